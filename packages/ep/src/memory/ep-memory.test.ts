// SPDX-License-Identifier: Apache-2.0
// Sizes: sections lie apart and as the contract says, sums are sums, and no routing receives more than the worst case.

import { callBytes, contextBytes, epAlignment, maxEpCalls } from '@nccl-ext/core/contract';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { EpConfig } from '../config/ep-config.js';
import { parseConfig } from '../config/parse-config.js';
import { probeEp } from '../group/probe-ep.js';
import { routingBalance } from '../routing/routing-balance.js';
import { epMemory } from './ep-memory.js';
import { layoutOf } from './layout-of.js';
import { worstCaseRows } from './worst-case-rows.js';

const config: EpConfig = { experts: 8, topK: 2, hidden: 64, dtype: 'bf16', maxTokensPerRank: 16 };

describe('layoutOf', () => {
  it('has the sections of the contract, apart and aligned', () => {
    const { group, handle } = layoutOf({ ...config, contexts: 3 }, 4);
    expect(group.contexts.bytes).toBe(3 * contextBytes(4));
    expect(group.calls.bytes).toBe(maxEpCalls * callBytes);
    expect(handle.experts.bytes).toBe(16 * 2 * 4);
    expect(handle.weights.bytes).toBe(16 * 2 * 4);
    expect(handle.slots.bytes).toBe(4 * 16 * 2 * 4);
    expect(handle.counts.bytes).toBe(8 * (2 + 2 + 4 + 8));
    for (const { bytes, ...sections } of [group, handle]) {
      let end = 0;
      for (const section of Object.values(sections)) {
        expect(section.byteOffset % epAlignment).toBe(0);
        expect(section.byteOffset).toBeGreaterThanOrEqual(end);
        end = section.byteOffset + section.bytes;
      }
      expect(bytes).toBe(end);
    }
  });

  it('is that of the rank with the most experts, on every rank', () => {
    const { handle } = layoutOf({ ...config, experts: { count: 3, placement: [[0, 1, 2], []] } }, 2);
    expect(handle.counts.bytes).toBe(8 * (3 + 3 + 2 + 8));
  });
});

describe('epMemory', () => {
  it('says bytes per purpose', () => {
    const memory = epMemory(config, 4);
    const { group, handle } = layoutOf(config, 4);
    expect(memory.group.bytes).toBe(group.bytes);
    expect(memory.handle.slots).toBe(handle.slots.bytes);
    const expertMajor = memory.layouts['expert-major'];
    expect(expertMajor).toMatchObject({ rows: 128, worstCaseRows: 128, combine: 128 * 128 });
    expect(expertMajor.dispatch).toEqual({
      'out.tokens': 16384,
      'out.expertCounts': 8,
      'out.sourceCounts': 16,
    });
    expect(memory.layouts.flat.bytes).toBe(2 * 64 * 128 + 2 * 64 * 2 * 4);
  });

  it('takes the budget where it is fixed, and says the worst case beside it', () => {
    const { flat, packed } = epMemory({ ...config, receiveBudget: 40 }, 4, 8).layouts;
    expect(flat).toMatchObject({ rows: 40, worstCaseRows: 64 });
    expect(packed).toMatchObject({ rows: 40, worstCaseRows: 128 + 2 * 7 });
  });
});

describe('worstCaseRows', () => {
  it('bounds what any routing receives, and is reached', () => {
    const shape = fc.record({
      ranks: fc.integer({ min: 1, max: 4 }),
      experts: fc.integer({ min: 1, max: 6 }),
      tokens: fc.integer({ min: 1, max: 4 }),
      k: fc.integer({ min: 1, max: 3 }),
      alignment: fc.constantFrom(1, 4),
      seed: fc.array(fc.nat(1000), { minLength: 64, maxLength: 64 }),
    });
    fc.assert(
      fc.property(shape, ({ ranks, experts, tokens, k, alignment, seed }) => {
        const topK = Math.min(k, experts);
        const settings = parseConfig({ ...config, experts, topK, maxTokensPerRank: tokens }, ranks);
        const topkIdx = Array.from({ length: ranks }, (_, s) =>
          Array.from({ length: tokens }, (_, t) => {
            const first = seed[(s * tokens + t) % seed.length]!;
            return Array.from({ length: topK }, (_, i) => (first + i) % experts);
          }).flat(),
        );
        const { rows, physical } = routingBalance({ topkIdx, topK, experts });
        for (let rank = 0; rank < ranks; rank++) {
          const local = settings.map.placement[rank]!.length;
          const zones = physical.load.slice(
            settings.map.firstPhysical[rank],
            settings.map.firstPhysical[rank + 1],
          );
          const padded = zones.reduce((sum, n) => sum + Math.ceil(n / alignment) * alignment, 0);
          expect(rows.load[rank]).toBeLessThanOrEqual(worstCaseRows(settings, 'flat', 1, local));
          expect(padded).toBeLessThanOrEqual(worstCaseRows(settings, 'packed', alignment, local));
        }
      }),
      { numRuns: 100 },
    );
    const settings = parseConfig({ ...config, experts: 4, topK: 2 }, 2);
    const all = Array.from({ length: 16 }, () => [0, 1]).flat();
    const { rank } = routingBalance({ topkIdx: [all, all], topK: 2, experts: 4 });
    expect(rank.max).toBe(worstCaseRows(settings, 'packed'));
  });
});

describe('probeEp', () => {
  it('says why a group cannot be', () => {
    expect(probeEp(config, 4, { layout: 'flat' }).feasible).toBe(true);
    expect(probeEp({ ...config, topK: 40 }, 4)).toMatchObject({
      feasible: false,
      error: { code: 'ERR_INVALID_ARGUMENT', field: 'topK' },
    });
    const huge = { ...config, experts: 256, topK: 8, maxTokensPerRank: 2 ** 20 };
    expect(probeEp(huge, 1024)).toMatchObject({
      feasible: false,
      error: { code: 'ERR_INVALID_ARGUMENT', field: 'maxTokensPerRank' },
    });
    expect(probeEp(config, 4, { layout: 'expert-major', handles: 2, availableBytes: 590_000 })).toMatchObject(
      {
        feasible: false,
        error: { code: 'ERR_OUT_OF_MEMORY', seen: 590_000 },
      },
    );
  });
});
