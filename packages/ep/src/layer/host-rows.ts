// SPDX-License-Identifier: Apache-2.0
// Which received rows each local expert works on, read from the counts and ids of a dispatch.

import { castArray, dtypeBytes } from '@nccl-ext/core';
import type { IndexTensor } from '../handle/call-options.js';
import type { EpTensor } from '../tensor/tensor.js';
import { viewTensor } from '../tensor/view-tensor.js';
import type { ExpertCall } from './expert-layer.js';

/** One term of a row's result: what number `index` among the rows of local expert `expert` gives, times `weight`. */
export interface RowTerm {
  readonly expert: number;
  readonly index: number;
  readonly weight: number;
}

export interface AssignedRows {
  /** `[e]`: rows of `tokens` of local expert e, in order. */
  readonly rowsOf: readonly number[][];
  /** Terms of each row that has any, in top-k order. */
  readonly termsOf: ReadonlyMap<number, readonly RowTerm[]>;
}

/** Reads the device: only in stream order. */
export function assignRows(call: ExpertCall): AssignedRows {
  const rowsOf: number[][] = call.localExperts.map(() => []);
  const termsOf = new Map<number, RowTerm[]>();
  const add = (row: number, expert: number, weight: number): void => {
    const index = rowsOf[expert]!.push(row) - 1;
    const terms = termsOf.get(row);
    if (terms === undefined) termsOf.set(row, [{ expert, index, weight }]);
    else terms.push({ expert, index, weight });
  };
  if (call.topkIdx === undefined) assignZones(call, add);
  else assignByIds(call, call.topkIdx, add);
  return { rowsOf, termsOf };
}

type Add = (row: number, expert: number, weight: number) => void;

/** expert-major slabs (combine applies the weights) and packed zones. */
function assignZones(call: ExpertCall, add: Add): void {
  const counts = numbersOf(call.counts!);
  const slab = call.tokens.shape.length === 3 ? call.tokens.shape[1]! : 0;
  const offsets = call.offsets === undefined ? undefined : numbersOf(call.offsets);
  const weights = call.topkWeights === undefined ? undefined : viewTensor(call.topkWeights);
  for (const [expert, count] of counts.entries()) {
    const first = count === 0 ? 0 : (offsets?.[expert] ?? expert * slab);
    for (let row = first; row < first + count; row++) add(row, expert, weights?.[row] ?? 1);
  }
}

/** flat and rank-major rows, which name their experts. */
function assignByIds(call: ExpertCall, topkIdx: IndexTensor, add: Add): void {
  const ids = numbersOf(topkIdx);
  const weights = viewTensor(call.topkWeights!);
  const topK = topkIdx.shape.at(-1)!;
  for (const row of liveRows(call))
    for (let at = row * topK; at < (row + 1) * topK && ids[at] !== -1; at++) add(row, ids[at]!, weights[at]!);
}

function* liveRows({ total, sourceCounts, tokens }: ExpertCall): Generator<number> {
  if (total !== undefined) {
    const [rows] = numbersOf(total);
    for (let row = 0; row < rows!; row++) yield row;
    return;
  }
  const perSource = tokens.shape[1]!;
  for (const [source, count] of numbersOf(sourceCounts!).entries())
    for (let row = source * perSource; row < source * perSource + count; row++) yield row;
}

function numbersOf(tensor: IndexTensor): number[] {
  return Array.from<number | bigint, number>(viewTensor<'i32' | 'i64'>(tensor), Number);
}

/** Rows of a tensor in f32, one after the other. */
export function gatherRows(tokens: EpTensor, rows: readonly number[]): Float32Array {
  const hidden = tokens.shape.at(-1)!;
  const rowBytes = hidden * dtypeBytes(tokens.dtype);
  const values = new Float32Array(rows.length * hidden);
  const bytes = new Uint8Array(values.buffer);
  for (const [index, row] of rows.entries())
    castArray(
      tokens.dtype,
      rowBytesOf(tokens, row, rowBytes),
      'f32',
      bytes.subarray(index * hidden * 4, (index + 1) * hidden * 4),
    );
  return values;
}

/** The bytes of row number `row` in device memory. */
export function rowBytesOf(tensor: EpTensor, row: number, rowBytes: number): Uint8Array {
  return tensor.buffer.view('u8', tensor.byteOffset + row * rowBytes, rowBytes);
}
