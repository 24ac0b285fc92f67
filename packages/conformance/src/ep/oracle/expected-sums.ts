// SPDX-License-Identifier: Apache-2.0
// Writes what a combine must give into images of memory: sums of rows per token, and gradients of weights.

import { type RankInputs, type StepRules, writeRow } from './expected-step.js';
import { decodeRow, encodeRow } from './floats.js';
import { hasRowPerEntry, type Received } from './received.js';
import type { Entry } from './routing.js';
import { weightsAsSent } from './sent-weights.js';
import { sumTerms } from './sum-rows.js';

/** [B, H] of a forward combine on rank `source`. */
export function expectCombine(
  rules: StepRules,
  received: readonly Received[],
  inputs: readonly RankInputs[],
  source: number,
  image: Uint8Array,
): void {
  const weightOf = weightsAsSent(rules, inputs);
  sumTokens(rules, received, source, inputs[source]!.routing.tokens, image, {
    rowsOn: (rank) => inputs[rank]!.rows,
    weightOf: rules.rows.layout === 'expert-major' ? weightOf : () => undefined,
  });
}

/** [B, H] and [B, K] of a backward combine on rank `source`. */
export function expectGather(
  rules: StepRules,
  received: readonly Received[],
  inputs: readonly RankInputs[],
  source: number,
  images: { readonly tokens: Uint8Array; readonly weights: Uint8Array },
): void {
  const { tokens } = inputs[source]!.routing;
  // Gradients are never quantised.
  const plain = { ...rules, sums: { ...rules.sums, quantization: 'none' as const } };
  sumTokens(plain, received, source, tokens, images.tokens, {
    rowsOn: (rank) => inputs[rank]!.gradientRows,
    weightOf: () => undefined,
  });
  const perRow = rules.rows.layout === 'packed' ? 1 : rules.topK;
  const gradients = new Float32Array(tokens * rules.topK);
  for (const { rank, rows } of received) {
    for (const { row, entries } of rows) {
      for (const [position, entry] of entries.entries()) {
        if (entry.source !== source) continue;
        gradients[entry.token * rules.topK + entry.k] =
          inputs[rank]!.gradientWeights[row * perRow + position]!;
      }
    }
  }
  images.weights.set(new Uint8Array(gradients.buffer));
}

interface SumInputs {
  rowsOn(rank: number): Uint8Array;
  weightOf(entry: Entry): number | undefined;
}

function sumTokens(
  { sums, rows: { layout } }: StepRules,
  received: readonly Received[],
  source: number,
  tokens: number,
  image: Uint8Array,
  { rowsOn, weightOf }: SumInputs,
): void {
  const rowBytes = sums.hidden * (sums.dtype === 'f32' ? 4 : 2);
  const perToken: {
    readonly k: number;
    readonly rank: number;
    readonly row: number;
    readonly entry: Entry;
  }[][] = Array.from({ length: tokens }, () => []);
  // A row that stands for several entries was summed by the caller: it counts once.
  for (const { rank, rows } of received)
    for (const { row, entries } of rows)
      if (entries[0]!.source === source)
        perToken[entries[0]!.token]!.push({ k: entries[0]!.k, rank, row, entry: entries[0]! });
  const perEntry = hasRowPerEntry(layout);
  for (const [token, terms] of perToken.entries()) {
    const sorted = terms.toSorted((a, b) => a.k - b.k);
    const sum = sumTerms(
      sorted.map(({ rank, row, entry }) => ({
        rank,
        weight: weightOf(entry),
        row: decodeRow(sums.dtype, rowsOn(rank).subarray(row * rowBytes, (row + 1) * rowBytes)),
      })),
      perEntry ? sums : { ...sums, reduction: 'rank' },
    );
    writeRow(image, token, encodeRow(sums.dtype, sum));
  }
}
