// SPDX-License-Identifier: Apache-2.0
// What does not fit is refused per device, by what is free there.

import type { World } from '@nccl-ext/core';
import { describe, expect, it } from 'vitest';
import { requireMemory } from './require-memory.js';

/** A world of GPUs, given by the GPU of each rank and what each GPU has free. */
function gpus(devices: readonly number[], free: readonly number[]): World {
  const ranks = devices.map((index, rank) => ({
    rank,
    device: { index, multiprocessors: 132 },
    availableMemory: free[index],
  }));
  return { ranks } as unknown as World;
}

describe('requireMemory', () => {
  it('adds up the ranks of each device, and what they take besides', () => {
    expect(() => requireMemory(gpus([0, 0, 1], [41e9, 21e9]), [20e9, 20e9, 20e9])).not.toThrow();
    expect(() => requireMemory(gpus([0, 0, 1], [40e9, 21e9]), [20e9, 20e9, 20e9])).toThrow();
  });

  it('names the device and both sizes', () => {
    const attempt = () => requireMemory(gpus([0, 1, 1], [80e9, 80e9]), [60e9, 60e9, 60e9]);
    expect(attempt).toThrow(
      expect.objectContaining({
        code: 'ERR_OUT_OF_MEMORY',
        expected: 80e9,
        message: expect.stringContaining('the ranks on GPU 1 take 120.1 GB; 80.0 GB are free on GPU 1.'),
      }),
    );
  });
});
