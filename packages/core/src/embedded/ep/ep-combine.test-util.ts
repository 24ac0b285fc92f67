// SPDX-License-Identifier: Apache-2.0
// Combines on all ranks, and compares sums and weight gradients with the oracle.

import { expect } from 'vitest';
import { absentRange, type EpLayout } from '../../contract/index.js';
import { ok } from '../harness.test-util.js';
import { combineCall, type RankStep } from './ep-calls.test-util.js';
import { randomRows } from './ep-data.test-util.js';
import { combineToken, decode, type Term } from './ep-oracle.test-util.js';
import { type EpWorld, rowBytesOf } from './ep-world.test-util.js';

/** Combines rows of random content and compares with the oracle. */
export async function combineStep(
  world: EpWorld,
  layout: EpLayout,
  handles: readonly number[],
  steps: readonly RankStep[],
  next: () => number,
  options: {
    readonly reduction?: 'rank' | 'token';
    readonly fp8?: boolean;
    readonly backward?: boolean;
    readonly sendOnly?: boolean;
    /** Rows that combine does not read stay as a graph left them. */
    readonly weights?: (rank: number) => Float32Array;
  } = {},
): Promise<void> {
  const { shape, ep, streams } = world;
  const { runtime } = world.world;
  const size = rowBytesOf(shape);
  const perRow = layout === 'packed' ? 1 : shape.topK;
  const outs = handles.map((handle, rank) => {
    const { outRows, routing } = steps[rank]!;
    const rows = randomRows(shape, outRows, next);
    const gradients = Float32Array.from({ length: outRows * perRow }, () => next());
    const ranges = {
      rows: world.put(rank, rows),
      out: world.allocate(rank, routing.tokens * size),
      gradients: options.backward ? world.put(rank, gradients) : absentRange,
      outWeights: options.backward ? world.allocate(rank, routing.tokens * shape.topK * 4) : absentRange,
    };
    ok(
      runtime,
      ep.enqueueCombine(
        handle,
        streams[rank]!,
        combineCall({
          pass: options.backward ? 'backward' : 'forward',
          quantization: options.fp8 ? 'fp8' : 'none',
          tokens: ranges.rows,
          rows: outRows,
          topkWeights: ranges.gradients,
          outTokens: ranges.out,
          outWeights: ranges.outWeights,
          sendOnly: options.sendOnly ?? false,
        }),
      ),
    );
    return { rows, gradients, ranges };
  });
  if (options.sendOnly)
    handles.forEach((handle, rank) => {
      ok(runtime, ep.enqueueComplete(handle, streams[rank]!));
    });
  await world.finish();
  const perEntry = layout === 'expert-major' || layout === 'packed';
  steps.forEach(({ routing }, source) => {
    for (let token = 0; token < routing.tokens; token++) {
      const terms: (Term & { k: number })[] = [];
      const grads = new Float32Array(shape.topK);
      steps.forEach(({ want }, rank) => {
        const own = want.entries.filter((entry) => entry.source === source && entry.token === token);
        own.forEach((entry, position) => {
          const row = decode(
            shape.dtype,
            outs[rank]!.rows.subarray(entry.row * size, (entry.row + 1) * size),
          );
          grads[entry.k] = outs[rank]!.gradients[entry.row * perRow + (layout === 'packed' ? 0 : position)]!;
          if (!perEntry && position > 0) return;
          const weight = options.weights?.(source)[token * shape.topK + entry.k] ?? entry.weight;
          terms.push({ rank, weight: layout === 'expert-major' ? weight : undefined, row, k: entry.k });
        });
      });
      terms.sort((a, b) => a.k - b.k);
      const want = combineToken(shape, terms, {
        byToken: options.reduction === 'token',
        payload: perEntry,
        fp8: options.fp8 ?? false,
      });
      const got = world
        .bytes(outs[source]!.ranges.out, routing.tokens * size)
        .subarray(token * size, (token + 1) * size);
      if (Buffer.compare(got, want) !== 0)
        expect({ source, token, values: [...decode(shape.dtype, got)] }).toEqual({
          source,
          token,
          values: [...decode(shape.dtype, want)],
        });
      if (options.backward)
        expect(
          world
            .floats(outs[source]!.ranges.outWeights, routing.tokens * shape.topK)
            .subarray(token * shape.topK, (token + 1) * shape.topK),
        ).toEqual(grads);
    }
  });
  for (const { ranges } of outs) world.free(...Object.values(ranges));
}
