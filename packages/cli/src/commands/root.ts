// SPDX-License-Identifier: Apache-2.0
// The tree of commands. Each is loaded only when it is named, so that `--version` and `doctor` start at once.

import type { Group } from '../command.js';

const plan: Group = {
  meta: { name: 'plan', description: 'Plan a transfer without moving data, at any scale' },
  examples: [
    {
      what: 'Kimi-K2 from 2048 training ranks to 2048 serving ranks',
      line: 'nccl-ext plan m2n --model Kimi-K2-Instruct --from ranks=2048,pp=16,ep=128 --to ranks=2048,tp=16',
    },
    {
      what: 'A Mixture-of-Experts layer of 256 experts on 8 ranks',
      line: 'nccl-ext plan ep --ranks 8 --experts 256 --tokens 128',
    },
  ],
  subCommands: {
    m2n: async () => (await import('./plan-m2n.js')).planM2nCommand,
    ep: async () => (await import('./plan-ep.js')).planEpCommand,
  },
};

const bench: Group = {
  meta: { name: 'bench', description: 'Measure a pattern against the copy ceiling of this machine' },
  examples: [
    { what: 'Reshards between 4 and 4 ranks', line: 'nccl-ext bench m2n' },
    { what: 'Dispatch and combine of 4 ranks', line: 'nccl-ext bench ep' },
  ],
  subCommands: {
    m2n: async () => (await import('./bench-m2n.js')).benchM2nCommand,
    ep: async () => (await import('./bench-ep.js')).benchEpCommand,
  },
};

const nccl: Group = {
  meta: { name: 'nccl', description: 'NCCL, which GPU backends need and no package brings' },
  examples: [{ what: 'Bring the pinned release through pip', line: 'nccl-ext nccl install' }],
  subCommands: { install: async () => (await import('./nccl-install.js')).ncclInstallCommand },
};

export const root: Group = {
  meta: {
    name: 'nccl-ext',
    description: 'Communication patterns for AI: move a model between layouts, and tokens to experts',
  },
  examples: [
    {
      what: 'Move a checkpoint from a trainer to an inference engine and check every byte',
      line: 'nccl-ext refit --checkpoint model.safetensors --from tp=4 --to tp=2,dp=2 --verify',
    },
    { what: 'Is this machine ready, and what would improve it', line: 'nccl-ext doctor' },
  ],
  subCommands: {
    refit: async () => (await import('./refit.js')).refitCommand,
    plan: async () => plan,
    doctor: async () => (await import('./doctor.js')).doctorCommand,
    bench: async () => bench,
    selftest: async () => (await import('./selftest.js')).selftestCommand,
    run: async () => (await import('./run.js')).runCommand,
    nccl: async () => nccl,
  },
};
