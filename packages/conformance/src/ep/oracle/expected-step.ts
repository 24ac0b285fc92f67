// SPDX-License-Identifier: Apache-2.0
// Writes what counts and received rows of a step must hold into images of memory; bytes that nobody may write stay as they are.

import type { EpQuantization } from '@nccl-ext/core/contract';
import { decodeRow } from './floats.js';
import { type MadeQuantization, quantiseRow } from './quantise.js';
import { padded, type Received, type Row, type RowRules, receivedBy } from './received.js';
import { entriesOf, type Placement, type Routing } from './routing.js';
import { weightsAsSent } from './sent-weights.js';
import type { SumRules } from './sum-rows.js';

/** What one rank brings to a step. */
export interface RankInputs {
  readonly routing: Routing;
  /** [B, H] and their scales, in bytes. */
  readonly tokens: Uint8Array;
  readonly scales: Uint8Array;
  /** Rows of the layout for combine, in the group's dtype. */
  readonly rows: Uint8Array;
  /** Backward: [B, H], rows of the layout, and gradients of their weights. */
  readonly gradients: Uint8Array;
  readonly gradientRows: Uint8Array;
  readonly gradientWeights: Float32Array;
}

/** What decides the outputs of a step, alike on all ranks. */
export interface StepRules {
  readonly placement: Placement;
  readonly topK: number;
  readonly rows: RowRules;
  readonly sums: SumRules;
  readonly quantization: EpQuantization;
  readonly renormalize: boolean;
  readonly idsLocal: boolean;
  /** -1: none. */
  readonly debugFill: number;
  /** Bytes of the scales of a row. */
  readonly scaleBytes: number;
}

/** Bytes of outputs by name, as the caller filled them; those that were not asked for are absent. */
export type Images = ReadonlyMap<string, Uint8Array>;

/** What each rank receives, by rank. */
export function receivedOf({ placement, topK, rows }: StepRules, routings: readonly Routing[]): Received[] {
  const entries = entriesOf(placement, topK, routings);
  return placement.experts.map((experts, rank) => receivedBy(rank, experts.length, entries, rows));
}

/** Writes counts to the images whose names start with `prefix`. */
export function expectCounts(rules: StepRules, received: Received, images: Images, prefix: string): void {
  const { layout, alignment } = rules.rows;
  const write = (name: string, values: readonly number[]): void => {
    const image = images.get(`${prefix}.${name}`);
    if (image !== undefined) writeIntegers(image, 0, values, image.byteLength / Math.max(1, values.length));
  };
  const { perExpert, firstRow, perSource, total, demand } = received;
  write('expertCounts', layout === 'packed' ? perExpert.map((rows) => padded(rows, alignment)) : perExpert);
  write('expertOffsets', firstRow);
  write('sourceCounts', perSource);
  write('total', [total]);
  write('demand', [demand]);
}

/** The outputs of a forward dispatch. `inputs` are those of all ranks. */
export function expectDispatch(
  rules: StepRules,
  received: Received,
  inputs: readonly RankInputs[],
  images: Images,
): void {
  const { layout } = rules.rows;
  const tokens = images.get('out.tokens')!;
  const scales = images.get('out.scales');
  const weights = images.get('out.topkWeights');
  const ids = images.get('out.topkIdx');
  const outRows = rowsOf(tokens, outRowBytes(rules, inputs));
  const perRow = layout === 'packed' ? 1 : rules.topK;
  const weightsOf = weightsAsSent(rules, inputs);
  fillGaps(rules, received, outRows, { tokens, scales, weights });
  if (layout === 'rank-major') ids!.fill(0xff);
  for (const row of received.rows) {
    const sent = sentRow(rules, inputs[row.source]!, row.token);
    writeRow(tokens, row.row, sent.row);
    if (scales !== undefined) writeRow(scales, row.row, sent.scales);
    if (weights !== undefined) {
      const values = new Float32Array(perRow);
      values.set(row.entries.map(weightsOf));
      writeRow(weights, row.row, new Uint8Array(values.buffer));
    }
    if (ids !== undefined) writeIds(rules, ids, row, ids.byteLength / outRows / rules.topK);
  }
}

/** The rows of a backward dispatch: every row of a token gets its gradient, without weights. */
export function expectScatter(
  rules: StepRules,
  received: Received,
  inputs: readonly RankInputs[],
  image: Uint8Array,
): void {
  const { dtype, hidden } = rules.sums;
  const rowBytes = hidden * (dtype === 'f32' ? 4 : 2);
  fillGaps(rules, received, rowsOf(image, rowBytes), { tokens: image });
  for (const { row, source, token } of received.rows)
    writeRow(image, row, inputs[source]!.gradients.subarray(token * rowBytes, (token + 1) * rowBytes));
}

function sentRow(
  rules: StepRules,
  { tokens, scales, routing }: RankInputs,
  token: number,
): { readonly row: Uint8Array; readonly scales: Uint8Array } {
  const bytes = tokens.byteLength / routing.tokens;
  const row = tokens.subarray(token * bytes, (token + 1) * bytes);
  if (rules.quantization === 'none' || rules.quantization === 'forward') {
    return { row, scales: scales.subarray(token * rules.scaleBytes, (token + 1) * rules.scaleBytes) };
  }
  const quantised = quantiseRow(rules.quantization as MadeQuantization, decodeRow(rules.sums.dtype, row));
  return { row: quantised.codes, scales: quantised.scaleBytes };
}

function outRowBytes(rules: StepRules, inputs: readonly RankInputs[]): number {
  const { dtype, hidden } = rules.sums;
  if (rules.quantization === 'none') return hidden * (dtype === 'f32' ? 4 : 2);
  if (rules.quantization !== 'forward') return hidden;
  const some = inputs.find(({ routing }) => routing.tokens > 0);
  return some === undefined ? 16 : some.tokens.byteLength / some.routing.tokens;
}

/** Rows between and behind those that came: zeros in padding, the debugging byte elsewhere. */
function fillGaps(
  { debugFill }: StepRules,
  { rows, padding }: Received,
  outRows: number,
  images: Readonly<Record<string, Uint8Array | undefined>>,
): void {
  const taken = new Set([...rows.map(({ row }) => row), ...padding]);
  for (const image of Object.values(images)) {
    if (image === undefined || outRows === 0) continue;
    const bytes = image.byteLength / outRows;
    for (const row of padding) image.fill(0, row * bytes, (row + 1) * bytes);
    if (debugFill < 0) continue;
    for (let row = 0; row < outRows; row++)
      if (!taken.has(row)) image.fill(debugFill, row * bytes, (row + 1) * bytes);
  }
}

function writeIds({ topK, idsLocal }: StepRules, image: Uint8Array, row: Row, entryBytes: number): void {
  const ids = new Array<number>(topK).fill(-1);
  for (const [position, { local, id }] of row.entries.entries()) ids[position] = idsLocal ? local : id;
  writeIntegers(image, row.row * topK * entryBytes, ids, entryBytes);
}

function writeIntegers(image: Uint8Array, at: number, values: readonly number[], entryBytes: number): void {
  const bytes =
    entryBytes === 8
      ? new Uint8Array(BigInt64Array.from(values, BigInt).buffer)
      : new Uint8Array(Int32Array.from(values).buffer);
  image.set(bytes, at);
}

export function writeRow(image: Uint8Array, row: number, bytes: Uint8Array): void {
  image.set(bytes, row * bytes.byteLength);
}

function rowsOf(image: Uint8Array, rowBytes: number): number {
  return image.byteLength / rowBytes;
}
