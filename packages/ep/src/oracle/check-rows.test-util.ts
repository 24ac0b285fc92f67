// SPDX-License-Identifier: Apache-2.0
// Outputs of a dispatch against what is expected: rows, weights, ids, counts, and that nothing else was written.

import type { EpLayout } from '@nccl-ext/core/contract';
import { expect } from 'vitest';
import type { LayerBuffers } from '../layer/layer-buffers.js';
import type { Batch } from './batches.test-util.js';
import type { ExpectedRank } from './expected-rows.test-util.js';
import { bytesOf, valuesOf } from './on-device.test-util.js';

/** Buffers were filled with `poison` before. */
export function checkRows(
  { rows, total }: ExpectedRank,
  layout: EpLayout,
  batches: readonly Batch[],
  buffers: LayerBuffers,
  poison = 0xaa,
): void {
  const hidden = buffers.rows.shape.at(-1)!;
  const values = valuesOf(buffers.rows);
  const bytes = bytesOf(buffers.rows);
  const rowBytes = (bytes.length / values.length) * hidden;
  const live = new Map(rows.map((row) => [row.at, row]));
  for (let at = 0; at < values.length / hidden; at++) {
    const row = live.get(at);
    const seen = values.slice(at * hidden, (at + 1) * hidden);
    if (row !== undefined) expect(seen).toEqual(batches[row.source]!.tokens[row.token]);
    else if (layout === 'packed' && at < total) expect(seen).toEqual(Array(hidden).fill(0));
    else expect(new Set(bytes.subarray(at * rowBytes, (at + 1) * rowBytes))).toEqual(new Set([poison]));
  }
  const { topkIdx, topkWeights } = buffers;
  const weights = topkWeights === undefined ? [] : valuesOf(topkWeights);
  const ids = topkIdx === undefined ? [] : valuesOf(topkIdx);
  const topK = topkIdx?.shape.at(-1) ?? 1;
  for (const { at, entries } of rows) {
    const tail = topK - entries.length;
    if (topkIdx !== undefined)
      expect(ids.slice(at * topK, (at + 1) * topK)).toEqual([
        ...entries.map(({ local }) => local),
        ...Array(tail).fill(-1),
      ]);
    if (topkWeights !== undefined)
      expect(weights.slice(at * topK, (at + 1) * topK)).toEqual([
        ...entries.map(({ weight }) => weight),
        ...Array(tail).fill(0),
      ]);
  }
}

export function checkCounts(
  { perExpert, perSource, firstRow, total }: ExpectedRank,
  layout: EpLayout,
  alignment: number,
  buffers: LayerBuffers,
): void {
  const padded = perExpert.map((n) => Math.ceil(n / alignment) * alignment);
  if (buffers.expertCounts !== undefined) expect(valuesOf(buffers.expertCounts)).toEqual(padded);
  expect(valuesOf(buffers.sourceCounts)).toEqual(perSource);
  if (buffers.total !== undefined) expect(valuesOf(buffers.total)).toEqual([total]);
  if (layout !== 'packed') return;
  const offsets = valuesOf(buffers.expertOffsets!);
  for (const [expert, n] of perExpert.entries()) if (n > 0) expect(offsets[expert]).toBe(firstRow[expert]);
}
