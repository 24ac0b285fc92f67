// SPDX-License-Identifier: Apache-2.0
// Words lead to commands wherever options stand between them, and misspelt words to what was meant.

import { describe, expect, it } from 'vitest';
import type { Command, Group } from './command.js';
import { findCommand } from './find-command.js';

const leaf = {
  meta: { name: 'm2n', description: '' },
  usage: '',
  args: {},
  examples: [],
} as unknown as Command;
const plan: Group = {
  meta: { name: 'plan', description: '' },
  examples: [],
  subCommands: { m2n: async () => leaf },
};
const root: Group = {
  meta: { name: 'nccl-ext', description: '' },
  examples: [],
  subCommands: { plan: async () => plan, refit: async () => leaf, doctor: async () => leaf },
};

describe('findCommand', () => {
  it('walks down and leaves the rest', async () => {
    expect(await findCommand(root, ['--json', 'plan', 'm2n', '--from', 'tp=2'])).toEqual({
      node: leaf,
      path: ['nccl-ext', 'plan', 'm2n'],
      rest: ['--json', '--from', 'tp=2'],
    });
    expect(await findCommand(root, ['plan', '--help'])).toEqual({
      node: plan,
      path: ['nccl-ext', 'plan'],
      rest: ['--help'],
    });
    expect((await findCommand(root, [])).node).toBe(root);
  });

  it.each([
    [['refti'], 'There is no command `nccl-ext refti`.', 'Did you mean `nccl-ext refit`?'],
    [['plan', 'n2m'], 'There is no command `nccl-ext plan n2m`.', 'Commands are `nccl-ext plan m2n`'],
    [['toString'], 'There is no command `nccl-ext toString`.', 'Commands are'],
  ])('refuses %j', async (words, message, help) => {
    await expect(findCommand(root, words)).rejects.toThrow(
      expect.objectContaining({
        code: 'ERR_INVALID_ARGUMENT',
        message: expect.stringContaining(message),
        help: expect.stringContaining(help),
      }),
    );
  });
});
