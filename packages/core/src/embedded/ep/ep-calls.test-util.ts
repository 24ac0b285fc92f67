// SPDX-License-Identifier: Apache-2.0
// Calls with everything that a test does not care about filled in, and one whole step checked against the oracle.

import { expect } from 'vitest';
import {
  absentRange,
  type EpCombineCall,
  type EpDispatchCall,
  type EpLayout,
  type EpRange,
  type EpRouteCall,
} from '../../contract/index.js';
import { ok } from '../harness.test-util.js';
import { randomRouting, randomRows } from './ep-data.test-util.js';
import { type Received, type Routing, type Rules, receive } from './ep-oracle.test-util.js';
import { absentCounter, type EpWorld, rowBytesOf, type Shape } from './ep-world.test-util.js';

export function routeCall(
  partial: Partial<EpRouteCall> & Pick<EpRouteCall, 'tokens' | 'topkIdx'>,
): EpRouteCall {
  return {
    topkWeights: absentRange,
    expertCounts: absentCounter,
    expertOffsets: absentCounter,
    sourceCounts: absentCounter,
    total: absentCounter,
    demand: absentCounter,
    ...partial,
  };
}

export function dispatchCall(shape: Shape, partial: Partial<EpDispatchCall>): EpDispatchCall {
  return {
    pass: 'forward',
    quantization: 'none',
    rowBytes: rowBytesOf(shape),
    outRowBytes: rowBytesOf(shape),
    scaleBytes: 0,
    tokens: absentRange,
    topkWeights: absentRange,
    scales: absentRange,
    outTokens: absentRange,
    outRows: 0,
    outScales: absentRange,
    outWeights: absentRange,
    outTopkIdx: absentCounter,
    idsLocal: true,
    expertCounts: absentCounter,
    sourceCounts: absentCounter,
    renormalize: false,
    sendOnly: false,
    ...partial,
  };
}

export function combineCall(partial: Partial<EpCombineCall>): EpCombineCall {
  return {
    pass: 'forward',
    quantization: 'none',
    tokens: absentRange,
    rows: 0,
    topkWeights: absentRange,
    outTokens: absentRange,
    outWeights: absentRange,
    sendOnly: false,
    ...partial,
  };
}

/** What one step of a handle holds on one rank. */
export interface RankStep {
  readonly routing: Routing;
  readonly tokens: Uint8Array;
  readonly want: Received;
  readonly outRows: number;
  readonly ranges: { readonly [name: string]: EpRange };
}

/** Rows that the outputs of a layout hold. */
function outRowsOf(world: EpWorld, layout: EpLayout, rank: number, want: Received, budget = 0): number {
  const { shape } = world;
  if (layout === 'expert-major') return world.local(rank) * shape.ranks * shape.maxTokens;
  if (layout === 'rank-major') return shape.ranks * shape.maxTokens;
  return Math.max(want.rows, budget);
}

/** Enqueues route and dispatch on every rank; `finishStep` checks them. */
export function enqueueStep(
  world: EpWorld,
  layout: EpLayout,
  handles: readonly number[],
  rules: Rules,
  next: () => number,
  routings: readonly Routing[] = world.streams.map(() => randomRouting(world.shape, next)),
): readonly RankStep[] {
  const { shape, ep, streams } = world;
  const { runtime } = world.world;
  return handles.map((handle, rank) => {
    const routing = routings[rank]!;
    const want = receive(shape, layout, rules, routings, rank);
    const tokens = randomRows(shape, routing.tokens, next);
    const outRows = outRowsOf(world, layout, rank, want, rules.budget);
    const perRow = layout === 'packed' ? 1 : shape.topK;
    const ids = layout === 'rank-major' || layout === 'flat';
    const ranges = {
      topkIdx: world.put(rank, routing.ids),
      topkWeights: world.put(rank, routing.weights),
      tokens: world.put(rank, tokens),
      outTokens: world.allocate(rank, outRows * rowBytesOf(shape)),
      outWeights: layout === 'expert-major' ? absentRange : world.allocate(rank, outRows * perRow * 4),
      outTopkIdx: ids ? world.allocate(rank, outRows * shape.topK * 4) : absentRange,
      expertCounts: world.allocate(rank, world.local(rank) * 4),
      sourceCounts: world.allocate(rank, shape.ranks * 4),
      total: world.allocate(rank, 8),
      demand: world.allocate(rank, 4),
      offsets: world.allocate(rank, world.local(rank) * 8),
    };
    for (const [name, length] of [
      ['outTokens', outRows * rowBytesOf(shape)],
      ['outWeights', layout === 'expert-major' ? 0 : outRows * perRow * 4],
      ['outTopkIdx', ids ? outRows * shape.topK * 4 : 0],
    ] as const)
      world.bytes(ranges[name], length).fill(0xa5);
    const low = layout === 'expert-major' || layout === 'rank-major';
    const counters = {
      expertCounts: { ...ranges.expertCounts, entryBytes: 4 as const },
      sourceCounts: { ...ranges.sourceCounts, entryBytes: 4 as const },
    };
    ok(
      runtime,
      ep.enqueueRoute(
        handle,
        streams[rank]!,
        routeCall({
          tokens: routing.tokens,
          topkIdx: { ...ranges.topkIdx, entryBytes: 4 },
          topkWeights: ranges.topkWeights,
          ...(low
            ? {}
            : {
                ...counters,
                total: { ...ranges.total, entryBytes: 8 },
                demand: { ...ranges.demand, entryBytes: 4 },
                expertOffsets: { ...ranges.offsets, entryBytes: 8 },
              }),
        }),
      ),
    );
    ok(
      runtime,
      ep.enqueueDispatch(
        handle,
        streams[rank]!,
        dispatchCall(shape, {
          tokens: ranges.tokens,
          topkWeights: ranges.topkWeights,
          outTokens: ranges.outTokens,
          outRows,
          outWeights: ranges.outWeights,
          outTopkIdx: { ...ranges.outTopkIdx, entryBytes: 4 },
          ...(low ? counters : {}),
        }),
      ),
    );
    return { routing, tokens, want, outRows, ranges };
  });
}

/** Compares rows, weights, ids and counts with the oracle. */
export function checkDispatched(
  world: EpWorld,
  layout: EpLayout,
  steps: readonly RankStep[],
  alignment = 1,
): void {
  const { shape } = world;
  const size = rowBytesOf(shape);
  steps.forEach((step) => {
    const { want, outRows, ranges } = step;
    const rows = new Uint8Array(outRows * size).fill(0xa5);
    const perRow = layout === 'packed' ? 1 : shape.topK;
    const weights = new Float32Array(outRows * perRow);
    new Uint8Array(weights.buffer).fill(0xa5);
    const ids = new Int32Array(outRows * shape.topK).fill(0xa5a5a5a5 | 0);
    if (layout === 'rank-major') ids.fill(-1);
    if (layout === 'packed')
      want.perExpert.forEach((count, expert) => {
        const padded = Math.ceil(count / alignment) * alignment;
        rows.fill(0, want.firstRow[expert]! * size, (want.firstRow[expert]! + padded) * size);
        weights.fill(0, want.firstRow[expert]!, want.firstRow[expert]! + padded);
      });
    const next = new Map<number, number>();
    for (const entry of want.entries) {
      const from = steps[entry.source]!.tokens.subarray(entry.token * size, (entry.token + 1) * size);
      rows.set(from, entry.row * size);
      if (layout === 'packed') weights[entry.row] = entry.weight;
      else {
        const at = next.get(entry.row) ?? 0;
        if (at === 0) {
          weights.fill(0, entry.row * shape.topK, (entry.row + 1) * shape.topK);
          ids.fill(-1, entry.row * shape.topK, (entry.row + 1) * shape.topK);
        }
        weights[entry.row * shape.topK + at] = entry.weight;
        ids[entry.row * shape.topK + at] = entry.local;
        next.set(entry.row, at + 1);
      }
    }
    expect(Buffer.compare(world.bytes(ranges.outTokens!, rows.length), rows)).toBe(0);
    if (ranges.outWeights!.buffer !== 0)
      expect(new Uint8Array(world.floats(ranges.outWeights!, weights.length).buffer)).toEqual(
        new Uint8Array(weights.buffer),
      );
    if (ranges.outTopkIdx!.buffer !== 0)
      expect(world.ints({ ...ranges.outTopkIdx!, entryBytes: 4 }, ids.length)).toEqual([...ids]);
    const counts = want.perExpert.map((count) =>
      layout === 'packed' ? Math.ceil(count / alignment) * alignment : count,
    );
    expect(world.ints({ ...ranges.expertCounts!, entryBytes: 4 }, counts.length)).toEqual(counts);
    expect(world.ints({ ...ranges.sourceCounts!, entryBytes: 4 }, shape.ranks)).toEqual([...want.perSource]);
    if (layout !== 'flat' && layout !== 'packed') return;
    expect(world.ints({ ...ranges.total!, entryBytes: 8 }, 1)).toEqual([want.rows]);
    expect(world.ints({ ...ranges.demand!, entryBytes: 4 }, 1)).toEqual([want.demand]);
    if (layout === 'packed')
      expect(world.ints({ ...ranges.offsets!, entryBytes: 8 }, counts.length)).toEqual([...want.firstRow]);
  });
}

export function freeSteps(world: EpWorld, steps: readonly RankStep[]): void {
  for (const { ranges } of steps) world.free(...Object.values(ranges));
}
