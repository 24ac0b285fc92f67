// SPDX-License-Identifier: Apache-2.0
// Routings that are made up: distinct experts, the same for a seed, even or not.

import { describe, expect, it } from 'vitest';
import { syntheticRouting } from './synthetic-routing.js';

const base = { kind: 'uniform', ranks: 4, tokens: 500, topK: 8, experts: 32, seed: 1, skew: 1 } as const;

function loads(ids: readonly Int32Array[]): number[] {
  const counts = new Array<number>(32).fill(0);
  for (const id of ids.flatMap((list) => [...list])) counts[id]!++;
  return counts.sort((a, b) => b - a);
}

describe('syntheticRouting', () => {
  it.each(['uniform', 'zipf'] as const)('%s gives distinct experts, the same for a seed', (kind) => {
    const ids = syntheticRouting({ ...base, kind });
    expect(ids.map((list) => list.length)).toEqual([4000, 4000, 4000, 4000]);
    for (const list of ids)
      for (let at = 0; at < list.length; at += 8) expect(new Set(list.subarray(at, at + 8)).size).toBe(8);
    expect(syntheticRouting({ ...base, kind })).toEqual(ids);
    expect(syntheticRouting({ ...base, kind, seed: 2 })).not.toEqual(ids);
  });

  it('is even, or has favourites', () => {
    const even = loads(syntheticRouting(base));
    expect(even[0]! / even[31]!).toBeLessThan(1.4);
    const zipf = loads(syntheticRouting({ ...base, kind: 'zipf', skew: 1.2 }));
    expect(zipf[0]! / zipf[31]!).toBeGreaterThan(5);
    // The most popular expert is in most tokens, but never twice in one.
    expect(zipf[0]).toBeLessThanOrEqual(2000);
  });

  it('routes to every expert when top-k is all of them', () => {
    const [ids] = syntheticRouting({ ...base, ranks: 1, tokens: 3, topK: 32 });
    for (let at = 0; at < 96; at += 32) expect(new Set(ids!.subarray(at, at + 32)).size).toBe(32);
  });
});
