// SPDX-License-Identifier: Apache-2.0
// A shell reads the words back as they were.

import { execFileSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { commandLine } from './command-line.js';

it('quotes what a shell would change', () => {
  expect(commandLine(['nccl-ext', 'refit', '--from=tp=4,pp=2'])).toBe('nccl-ext refit --from=tp=4,pp=2');
  const words = ['two words', "it's", '$HOME', '*', '', 'a"b', '\\'];
  const echoed = execFileSync('sh', ['-c', `printf '%s\\n' ${commandLine(words)}`], { encoding: 'utf8' });
  expect(echoed.split('\n').slice(0, -1)).toEqual(words);
});
