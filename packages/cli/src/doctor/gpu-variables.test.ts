// SPDX-License-Identifier: Apache-2.0
// Variables that switch off what nccl-ext builds on are named; others are left alone.

import { describe, expect, it } from 'vitest';
import { variableChecks } from './gpu-variables.js';

describe('variableChecks', () => {
  it.each([
    ['NCCL_CUMEM_ENABLE', '0'],
    ['NCCL_MULTI_RANK_GPU_ENABLE', '0'],
    ['CUDA_DEVICE_MAX_CONNECTIONS', '1'],
    ['CUDA_MODULE_LOADING', 'lazy'],
    ['CUDA_LAUNCH_BLOCKING', '1'],
    ['NCCL_P2P_DISABLE', '1'],
  ])('%s=%s is in the way', (variable, value) => {
    const [check, ...rest] = variableChecks({ [variable]: value, PATH: '/bin' });
    expect(rest).toEqual([]);
    expect(check).toEqual({
      name: variable,
      status: 'warning',
      found: expect.stringContaining(value),
      fix: expect.stringMatching(/^Unset it/),
    });
  });

  it.each([
    ['NCCL_CUMEM_ENABLE', '1'],
    ['CUDA_DEVICE_MAX_CONNECTIONS', '32'],
    ['CUDA_MODULE_LOADING', 'EAGER'],
    ['CUDA_LAUNCH_BLOCKING', ''],
    ['NCCL_DEBUG', '0'],
  ])('%s=%s is not', (variable, value) => {
    expect(variableChecks({ [variable]: value })).toEqual([]);
  });
});
