// SPDX-License-Identifier: Apache-2.0
// Works on whole rows: copies, sums and quantises them, through the worker's scratch area where they lie in different blocks.

import { offsetOf } from '../memory/address.js';
import { bytesAt, type Space, scratchBytes } from '../memory/space.js';
import type { Kernels } from './kernels.js';
import type { Spaces } from './spaces.js';

/** Terms of a sum at most, one per top-k position; their list takes 16 bytes each at the start of the scratch area. */
const arithmetic = 1024;
const staging = 4096;
/** Tiles hold whole blocks of 128 elements of any dtype. */
const tileUnit = 512;
const fillBytes = 2 ** 30;

/** Where kernels work: a block, and this worker's scratch area in it. */
interface Bench {
  readonly space: Space | undefined;
  readonly kernels: Kernels;
  readonly start: number;
  readonly bytes: Uint8Array;
  readonly words: Int32Array;
  readonly floats: Float32Array;
}

const benches = new WeakMap<SharedArrayBuffer, Bench>();

/** The bench of a block, or of the worker's own scratch memory where kernels cannot reach the block. */
function benchOf(spaces: Spaces, space: Space): Bench {
  const known = benches.get(space.buffer);
  if (known !== undefined) return known;
  const kernels = spaces.kernels(space);
  const { scratch } = spaces;
  const start = kernels === undefined ? scratch.start : spaces.scratchOffset;
  const buffer = (kernels === undefined ? scratch.bytes.buffer : space.buffer) as SharedArrayBuffer;
  const bench: Bench = {
    space: kernels === undefined ? undefined : space,
    kernels: kernels ?? scratch.kernels,
    start,
    bytes: new Uint8Array(buffer, start, scratchBytes),
    words: new Int32Array(buffer, start, scratchBytes / 4),
    floats: new Float32Array(buffer, start, scratchBytes / 4),
  };
  benches.set(space.buffer, bench);
  return bench;
}

export function copyRow(spaces: Spaces, to: number, from: number, bytes: number): void {
  if (bytes === 0) return;
  const [target, source] = [spaces.of(to), spaces.of(from)];
  const kernels = target === source ? spaces.kernels(target) : undefined;
  if (kernels === undefined) bytesAt(target, offsetOf(to), bytes).set(bytesAt(source, offsetOf(from), bytes));
  else kernels.copyRuns(offsetOf(to), offsetOf(from), bytes, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1);
}

export function fillBytesAt(spaces: Spaces, address: number, bytes: number, value: number): void {
  if (bytes === 0) return;
  const space = spaces.of(address);
  for (let done = 0; done < bytes; done += fillBytes)
    bytesAt(space, offsetOf(address) + done, Math.min(fillBytes, bytes - done)).fill(value);
}

/** The terms of a sum, in order. */
export interface Terms {
  count: number;
  readonly address: Float64Array;
  readonly weight: Float32Array;
  /** 1: weighted; 2: the last of its rank. */
  readonly flags: Int32Array;
}

export interface SumRule {
  readonly dtype: number;
  /** Of a row. */
  readonly bytes: number;
  readonly elementBytes: number;
  /**
   * What becomes of the sum of a rank before it is added: nothing, rounding to the dtype, f8e4m3 with scales. `plain`: all
   * terms are one unweighted sum.
   */
  readonly payload: 'none' | 'dtype' | 'plain' | 'fp8';
}

/** As ep.wat knows them. */
const payloadCodes = { none: 0, dtype: 1, plain: 2 } as const;

/** Writes the sum of `terms` (+0 without any) to the row at `to`. */
export function sumRow(spaces: Spaces, to: number, terms: Terms, rule: SumRule): void {
  if (terms.count === 0) {
    fillBytesAt(spaces, to, rule.bytes, 0);
    return;
  }
  const target = spaces.of(to);
  const bench = benchOf(spaces, target);
  for (let i = 0; i < terms.count; i++) {
    bench.words[i * 4] = offsetOf(terms.address[i]!);
    bench.floats[i * 4 + 1] = terms.weight[i]!;
    bench.words[i * 4 + 2] = terms.flags[i]!;
  }
  if (bench.space !== undefined && allIn(spaces, bench.space, terms)) {
    sum(bench, offsetOf(to), rule.bytes, terms.count, rule);
    return;
  }
  sumTiles(spaces, bench, to, terms, rule);
}

function allIn(spaces: Spaces, space: Space, { count, address }: Terms): boolean {
  for (let i = 0; i < count; i++) if (spaces.of(address[i]!) !== space) return false;
  return true;
}

function sumTiles(spaces: Spaces, bench: Bench, to: number, terms: Terms, rule: SumRule): void {
  const { count, address } = terms;
  const room = Math.floor((scratchBytes - staging) / (count + 1) / tileUnit) * tileUnit;
  const result = staging + count * room;
  for (let done = 0; done < rule.bytes; done += room) {
    const part = Math.min(room, rule.bytes - done);
    for (let i = 0; i < count; i++) {
      const at = staging + i * room;
      const source = spaces.of(address[i]!);
      bench.bytes.set(bytesAt(source, offsetOf(address[i]!) + done, part), at);
      bench.words[i * 4] = bench.start + at;
    }
    sum(bench, bench.start + result, part, count, rule);
    bytesAt(spaces.of(to), offsetOf(to) + done, part).set(bench.bytes.subarray(result, result + part));
  }
}

function sum(bench: Bench, to: number, bytes: number, count: number, rule: SumRule): void {
  const { kernels, start } = bench;
  if (rule.payload === 'fp8')
    kernels.epSumFp8(rule.dtype, to, bytes / rule.elementBytes, start, count, start + arithmetic);
  else kernels.epSum(rule.dtype, to, bytes, start, count, payloadCodes[rule.payload]);
}

/** How rows become f8e4m3: `recipe` as in the contract, 2 to 4. */
export interface QuantiseRule {
  readonly recipe: number;
  readonly dtype: number;
  readonly elements: number;
  readonly elementBytes: number;
  readonly scaleBytes: number;
}

/** Writes the f8e4m3 of the row at `from` to `to`, and its scales to `scales`. */
export function quantiseRow(
  spaces: Spaces,
  to: number,
  scales: number,
  from: number,
  rule: QuantiseRule,
): void {
  const target = spaces.of(to);
  const bench = benchOf(spaces, target);
  const { kernels, start } = bench;
  const { recipe, dtype, elements, elementBytes, scaleBytes } = rule;
  if (bench.space !== undefined && spaces.of(from) === target && spaces.of(scales) === target) {
    kernels.epQuantise(
      dtype,
      offsetOf(from),
      elements,
      offsetOf(to),
      offsetOf(scales),
      recipe,
      start + arithmetic,
    );
    return;
  }
  const tile = 4096;
  const scalePerTile = (scaleBytes / elements) * tile;
  const result = staging + tile * 4;
  const resultScales = result + tile;
  for (let done = 0; done < elements; done += tile) {
    const part = Math.min(tile, elements - done);
    bench.bytes.set(
      bytesAt(spaces.of(from), offsetOf(from) + done * elementBytes, part * elementBytes),
      staging,
    );
    // biome-ignore format: in the order of ep.wat
    kernels.epQuantise(dtype, start + staging, part, start + result, start + resultScales, recipe, start + arithmetic);
    bytesAt(target, offsetOf(to) + done, part).set(bench.bytes.subarray(result, result + part));
    const bytes = (scaleBytes / elements) * part;
    const scalesAt = scales + (done / tile) * scalePerTile;
    bytesAt(spaces.of(scales), offsetOf(scalesAt), bytes).set(
      bench.bytes.subarray(resultScales, resultScales + bytes),
    );
  }
}
