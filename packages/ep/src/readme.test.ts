// SPDX-License-Identifier: Apache-2.0
// The program of the README runs and prints what it says.

import { readFileSync } from 'node:fs';
import * as core from '@nccl-ext/core';
import { expect, it } from 'vitest';
import * as ep from './index.js';

const AsyncFunction = (async () => {}).constructor as new (
  ...text: string[]
) => (...values: unknown[]) => Promise<void>;

it('the program of the README prints what it says', async () => {
  const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8');
  const program = /```js\n([\s\S]*?)```/.exec(readme)![1]!;
  const said = [...program.matchAll(/console\.log\(.*\); \/\/ (.*)/g)].map(([, text]) => text);
  const printed: string[] = [];
  const scope = { ...core, ...ep, console: { log: (text: string) => printed.push(text) } };
  const body = program.replace(/^import .*\n/gm, '');
  await new AsyncFunction(...Object.keys(scope), `{ ${body} }`)(...Object.values(scope));
  expect(said).toHaveLength(1);
  expect(printed).toEqual(said);
});
