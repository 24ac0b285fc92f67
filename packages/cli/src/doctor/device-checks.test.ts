// SPDX-License-Identifier: Apache-2.0
// GPUs are listed with what tells them apart, and pairs that do not reach each other are shown.

import { describe, expect, it } from 'vitest';
import { gpu } from './device.test-util.js';
import { deviceChecks } from './device-checks.js';

describe('deviceChecks', () => {
  it('describes one GPU, which has no peers to speak of', () => {
    const [line, ...rest] = deviceChecks([gpu(0)]);
    expect(line).toEqual({
      name: 'GPU 0',
      status: 'ok',
      found:
        'NVIDIA H200, compute capability 9.0, 132 SMs, 151 GB memory, GPU-00000000-0000-0000-0000-000000000000',
    });
    expect(rest).toEqual([]);
  });

  it('says in one sentence that all reach all', () => {
    const lines = deviceChecks([gpu(0, [1]), gpu(1, [0])]);
    expect(lines.at(-1)).toEqual({
      name: 'GPU peers',
      status: 'ok',
      found: 'each GPU reaches every other one',
    });
  });

  it('shows who does not reach whom as a matrix, with what to look at', () => {
    const lines = deviceChecks([gpu(0, [1]), gpu(1, [0]), gpu(2)]);
    expect(lines.at(-1)).toEqual({
      name: 'GPU peers',
      status: 'warning',
      found: ['  0 1 2', '0 . + -', '1 + . -', '2 - - .'].join('\n'),
      fix: expect.stringContaining('nvidia-smi topo'),
    });
  });
});
