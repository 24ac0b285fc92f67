// SPDX-License-Identifier: Apache-2.0
// Each side's ranks go round over that side's devices, and nothing is guessed where that cannot be.

import { layout, mesh, shard } from '@nccl-ext/core';
import { describe, expect, it } from 'vitest';
import { patternOf } from '../plan/pattern-of-layout.js';
import type { RefitLayouts } from './refit-layouts.js';
import { placeSides } from './side-placement.js';

/** Ranks 0 to 3 hold the source, `count` ranks from `startRank` on the destination. */
function layouts(startRank: number, count: number): RefitLayouts {
  const held = (ranks: number, first: number) => [
    {
      storage: 'w',
      pattern: patternOf(
        layout({
          shape: [64],
          dtype: 'f32',
          mesh: mesh({ tp: ranks }, { startRank: first }),
          placements: [shard(0)],
        }),
      ),
    },
  ];
  return {
    tensors: [{ name: 'w', source: held(4, 0), destination: held(count, startRank) }],
    worldSize: startRank + count,
  };
}

describe('placeSides', () => {
  it('is empty where nobody asked', () => {
    expect(placeSides(layouts(4, 4), {})).toEqual({});
  });

  it('goes round on each side by itself, and puts ranks that hold nothing anywhere', () => {
    const asked = { sourceDevices: [0, 1], destinationDevices: [2, 3, 4] };
    expect(placeSides(layouts(5, 4), asked)).toEqual({ devices: [0, 1, 0, 1, 0, 2, 3, 4, 2] });
  });

  it('gives ranks on both sides the SMs of a source', () => {
    const asked = { sourceSms: 28, destinationSms: 4 };
    expect(placeSides(layouts(2, 4), asked)).toEqual({ sms: [28, 28, 28, 28, 4, 4] });
  });

  it('refuses what is said for all ranks and for each side', () => {
    const devices = { sourceDevices: [0], destinationDevices: [1] };
    expect(() => placeSides(layouts(4, 4), devices, { devices: [0] })).toThrow('devices and sourceDevices');
    const sms = { sourceSms: 28, destinationSms: 4 };
    expect(() => placeSides(layouts(4, 4), sms, { sms: 8 })).toThrow('sms and sourceSms exclude each other.');
    expect(placeSides(layouts(4, 4), {}, { sms: 8, devices: [0] })).toEqual({});
  });

  it('refuses one list alone, an empty one, and ranks on both sides', () => {
    const refused = [
      () => placeSides(layouts(4, 4), { sourceDevices: [0] }),
      () => placeSides(layouts(4, 4), { sourceDevices: [0], destinationDevices: [] }),
      () => placeSides(layouts(2, 4), { sourceDevices: [0], destinationDevices: [1] }),
      () => placeSides(layouts(4, 4), { sourceSms: 1 }),
    ];
    for (const attempt of refused)
      expect(attempt).toThrow(
        expect.objectContaining({
          code: 'ERR_INVALID_ARGUMENT',
          field: expect.stringMatching(/^destination/),
        }),
      );
  });
});
