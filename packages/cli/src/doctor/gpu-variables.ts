// SPDX-License-Identifier: Apache-2.0
// Variables of CUDA and NCCL that switch off what nccl-ext builds on.

import { type Check, warning } from './check.js';

type Environment = Readonly<Record<string, string | undefined>>;

interface Rule {
  readonly variable: string;
  readonly harmful: (value: string) => boolean;
  /** What follows from it; completes "is X: ...". */
  readonly effect: string;
  readonly fix: string;
}

const isZero = (value: string): boolean => value.trim() === '0';

const rules: readonly Rule[] = [
  {
    variable: 'NCCL_CUMEM_ENABLE',
    harmful: isZero,
    effect: 'NCCL then has no memory that can be a window',
    fix: 'Unset it.',
  },
  {
    variable: 'NCCL_MULTI_RANK_GPU_ENABLE',
    harmful: isZero,
    effect: 'NCCL then refuses two ranks on one GPU',
    fix: 'Unset it, unless no two ranks share a GPU.',
  },
  {
    variable: 'CUDA_DEVICE_MAX_CONNECTIONS',
    harmful: (value) => Number(value) < 32,
    effect:
      'streams then share hardware queues, and a kernel that waits can sit in front of the one it waits for',
    fix: 'Unset it: nccl-ext sets 32.',
  },
  {
    variable: 'CUDA_MODULE_LOADING',
    harmful: (value) => value.toUpperCase() === 'LAZY',
    effect: 'loading a kernel while a peer waits on the same GPU can take until the timeout',
    fix: 'Unset it: nccl-ext sets EAGER where ranks share a GPU.',
  },
  {
    variable: 'CUDA_LAUNCH_BLOCKING',
    harmful: (value) => value.trim() === '1',
    effect: 'each launch waits for its kernel, so that one thread cannot drive several ranks',
    fix: 'Unset it.',
  },
  {
    variable: 'NCCL_P2P_DISABLE',
    harmful: (value) => value.trim() === '1',
    effect: 'GPUs of one machine then go through host memory or the network',
    fix: 'Unset it.',
  },
];

/** A warning for each variable that is set to its harm. */
export function variableChecks(env: Environment): Check[] {
  return rules.flatMap(({ variable, harmful, effect, fix }) => {
    const value = env[variable];
    if (value === undefined || value === '' || !harmful(value)) return [];
    return [warning(variable, `is ${value}: ${effect}`, fix)];
  });
}
