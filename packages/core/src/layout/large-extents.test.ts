// SPDX-License-Identifier: Apache-2.0
// Elements are found exactly where extents pass 2^31, 2^32 and 2^40, against shares counted in exact integers.

import { describe, expect, it } from 'vitest';
import { mesh } from '../mesh/device-mesh.js';
import { layout } from './layout.js';
import { blockCyclic, shard } from './placement.js';

describe('extents across 2^31, 2^32 and 2^40', () => {
  const around = [2 ** 31, 2 ** 32, 2 ** 40, 2 ** 53 - 8]
    .flatMap((n) => [n - 1, n, n + 7])
    .filter((n) => n < 2 ** 53 - 1);

  it.each(around)('nests and finds elements of %d', (extent) => {
    const subject = layout({
      shape: [extent],
      dtype: 'u8',
      mesh: mesh({ a: 3, b: 2, c: 2 }),
      placements: [shard(0), shard(0, blockCyclic(1000)), shard(0)],
    });
    // By hand, in exact integers: chunk of a, block of b, chunk of what b has.
    const big = BigInt(extent);
    const size = (big + 2n) / 3n;
    for (const global of [0n, 1n, 999n, 1000n, size - 1n, size, big / 2n, 2n * size, big - 1n]) {
      const a = global / size;
      const inA = global - a * size;
      const b = (inA / 1000n) % 2n;
      const inB = (inA / 2000n) * 1000n + (inA % 1000n);
      const length = a === 2n ? big - 2n * size : size;
      const whole = length / 1000n;
      const rest = length % 1000n;
      const extentB = ((whole + 1n - b) / 2n) * 1000n + (whole % 2n === b ? rest : 0n);
      const half = (extentB + 1n) / 2n;
      const c = inB / half;
      const rank = Number(a * 4n + b * 2n + c);
      const local = Number(inB - c * half);
      expect(subject.holders([Number(global)])).toEqual([rank]);
      expect(subject.toLocal(rank, [Number(global)])).toEqual([local]);
      expect(subject.toGlobal(rank, [local])).toEqual([Number(global)]);
    }
    const total = subject.mesh.ranks.reduce((sum, rank) => sum + BigInt(subject.localShape(rank)![0]!), 0n);
    expect(total).toBe(big);
  });
});
