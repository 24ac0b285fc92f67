// SPDX-License-Identifier: Apache-2.0
// The digest names what is planned: equal for equal requests however they were built, different for different ones.

import { layout, mesh, replicate, shard, singleDomain } from '@nccl-ext/core';
import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { createPlan } from './create-plan.js';
import { patternOf } from './pattern-of-layout.js';
import type { PlanRequest, TensorRequest } from './plan-request.js';
import { tensors, worldSize } from './random-tensors.test-util.js';
import { sidePattern } from './side-pattern.js';
import { cluster } from './simulate-plan.test-util.js';

const at = (startRank: number, dim = 0) =>
  layout({
    shape: [8, 8],
    dtype: 'f32',
    mesh: mesh({ tp: 2 }, { startRank }),
    placements: { tp: shard(dim) },
  });
const request = (change: Partial<PlanRequest> = {}): PlanRequest => ({
  tensors: [{ name: 'w', source: at(0), destination: at(2) }],
  ...change,
});
const digestOf = (input: PlanRequest): string => createPlan({ ...input, cacheEntries: 0 }).digest;

describe('digest', () => {
  it('is 64 hexadecimal digits and depends on every part of the request', () => {
    const [w] = request().tensors;
    const others: PlanRequest[] = [
      request({ worldSize: 5 }),
      request({ topology: cluster(4, 2, 2) }),
      request({ tensors: [{ ...w!, name: 'v' }] }),
      request({ tensors: [{ ...w!, source: at(0, 1) }] }),
      request({ tensors: [{ ...w!, source: at(4) }] }),
      request({ tensors: [{ ...w!, source: [{ pattern: patternOf(at(0)), storage: 'v' }] }] }),
      request({
        tensors: [{ ...w!, source: [{ pattern: patternOf(at(0), { byteOffset: () => 4 }), storage: 'w' }] }],
      }),
      request({ tensors: [w!, { ...w!, name: 'v' }] }),
      request({ tensors: [{ ...w!, name: 'v' }, w!] }),
      request({ tensors: [] }),
    ];
    const digests = [request(), ...others].map(digestOf);
    for (const digest of digests) expect(digest).toMatch(/^[0-9a-f]{64}$/);
    expect(new Set(digests).size).toBe(digests.length);
  });

  it('does not depend on the identity of objects or on how the same was said', () => {
    const said: PlanRequest[] = [
      request(),
      request({ worldSize: 4 }),
      request({ topology: singleDomain(4) }),
      request({ topology: singleDomain(9), worldSize: 4 }),
      request({
        tensors: [{ destination: at(2), source: [{ storage: 'w', pattern: patternOf(at(0)) }], name: 'w' }],
      }),
    ];
    const wide = layout({
      shape: [8, 8],
      dtype: 'f32',
      mesh: mesh({ dp: 1, tp: 2 }),
      placements: { dp: replicate(), tp: shard(0) },
    });
    said.push(request({ tensors: [{ name: 'w', source: wide, destination: at(2) }] }));
    expect(new Set(said.map(digestOf)).size).toBe(1);
  });

  it('comes with the same programs from patterns that share nothing', () => {
    const copied = (tensor: TensorRequest): TensorRequest => {
      const copy = (side: TensorRequest['source']) => {
        const { dtype, shape, parts } = patternOf(side as Exclude<typeof side, readonly unknown[]>);
        const pattern = sidePattern({ dtype, shape, parts: structuredClone([...parts]) });
        return [{ pattern, storage: tensor.name }];
      };
      return { name: tensor.name, source: copy(tensor.source), destination: copy(tensor.destination) };
    };
    fc.assert(
      fc.property(tensors('a'), tensors('b'), (a, b) => {
        const options = { worldSize, topology: cluster(worldSize, 4, 2), cacheEntries: 0 };
        const one = createPlan({ tensors: [a, b], ...options });
        const two = createPlan({ tensors: [copied(a), copied(b)], ...options });
        expect(two.digest).toBe(one.digest);
        expect(two.totals).toEqual(one.totals);
        for (const rank of [0, 5, 11]) expect(two.program(rank)).toEqual(one.program(rank));
      }),
      { numRuns: 60 },
    );
  });
});

describe('plan cache', () => {
  it('hands out the same plan for an equal request until newer ones push it out', () => {
    const named = (name: string): PlanRequest =>
      request({ tensors: [{ ...request().tensors[0]!, name }], cacheEntries: 2 });
    const first = createPlan(named('cached a'));
    expect(createPlan(named('cached a'))).toBe(first);
    createPlan(named('cached b'));
    expect(createPlan(named('cached a'))).toBe(first);
    createPlan(named('cached c'));
    expect(createPlan(named('cached a'))).toBe(first);
    createPlan(named('cached b'));
    createPlan(named('cached c'));
    expect(createPlan(named('cached a'))).not.toBe(first);
    expect(createPlan({ ...named('cached a'), cacheEntries: 0 })).not.toBe(createPlan(named('cached a')));
  });

  it('follows the variable of the process where the call says nothing', () => {
    const named = (name: string) => request({ tensors: [{ ...request().tensors[0]!, name }] });
    vi.stubEnv('NCCL_EXT_PLAN_CACHE_ENTRIES', '0');
    try {
      expect(createPlan(named('not kept'))).not.toBe(createPlan(named('not kept')));
    } finally {
      vi.unstubAllEnvs();
    }
    expect(createPlan(named('not kept'))).toBe(createPlan(named('not kept')));
  });
});

describe('patterns', () => {
  it('counts geometries, not ranks', () => {
    const list = [0, 2, 4].map((startRank, i) => ({
      name: `w${i}`,
      source: at(startRank),
      destination: at(6),
    }));
    expect(createPlan({ tensors: list }).patterns).toBe(1);
    expect(
      createPlan({ tensors: [...list, { name: 'v', source: at(0, 1), destination: at(6) }] }).patterns,
    ).toBe(2);
  });
});
