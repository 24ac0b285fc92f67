// Guides hold. Their JavaScript blocks are one program: the first makes the world, the others are what each rank runs. What they claim is checked.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as core from '@nccl-ext/core';
import * as ep from '@nccl-ext/ep';
import { expect, it } from 'vitest';
import { withChecks } from './with-checks.js';

const docs = join(fileURLToPath(import.meta.url), '../../docs');
const AsyncFunction = (async () => {}).constructor as new (
  ...text: string[]
) => (...values: unknown[]) => Promise<void>;

it.each(['ep.md', 'ep-migration.md'])('%s', async (document) => {
  const text = readFileSync(join(docs, document), 'utf8');
  const [prelude, ...blocks] = [...text.matchAll(/```js\n([\s\S]*?)```/g)].map(([, code]) => code!);
  const program = `${prelude!.replace(/^import [\s\S]*?;\n/gm, '')}
    try { await world.run(async (comm) => { ${blocks.map(withChecks).join('\n')} }); }
    finally { await world.dispose(); }`;
  const scope: Record<string, unknown> = { ...core, ...ep, expect };
  await new AsyncFunction(...Object.keys(scope), program)(...Object.values(scope));
});

it('the reference has every option of a group', () => {
  const source = readFileSync(join(docs, '../packages/ep/src/config/ep-config.ts'), 'utf8');
  const reference = readFileSync(join(docs, 'ep-reference.md'), 'utf8');
  const options = [...source.matchAll(/^ {2}readonly (\w+)\??:/gm)].map(([, name]) => name!);
  expect(options).toHaveLength(15);
  for (const name of options) expect(reference).toContain(`\n| \`${name}\` |`);
});
