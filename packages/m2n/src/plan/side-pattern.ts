// SPDX-License-Identifier: Apache-2.0
// Describes one side of a transfer as data: which ranks hold which part of a global tensor, and where it lies in their storage.

import { type DimRuns, type DType, dtypeBytes, dtypes, isDType, NcclExtError } from '@nccl-ext/core';
import { describe, requireArray, requireObject } from '@nccl-ext/core/extend';
import { endOfRuns, runsText } from './geometry.js';

/** Ranks that hold the same elements at the same place of their storage. */
export interface Part {
  /** What they hold, per tensor dimension; the part is the product. Share equal objects between parts and patterns. */
  readonly dims: readonly DimRuns[];
  /** The replicas, ascending, without repeats. */
  readonly ranks: Int32Array;
  /** Bytes from one local element to the next, per dimension. */
  readonly byteStrides: readonly number[];
  /** Where the part starts in the stored tensor; not 0 for fused storage, such as q inside qkv. */
  readonly byteOffset: number;
}

/** What {@link sidePattern} takes for a part. */
export interface PartInput {
  readonly dims: readonly DimRuns[];
  readonly ranks: ArrayLike<number>;
  /** Default: dense, row-major over the local extents. */
  readonly byteStrides?: readonly number[];
  /** Default 0. */
  readonly byteOffset?: number;
}

/** What {@link sidePattern} takes. */
export interface SidePatternInput {
  readonly dtype: DType;
  /** Global extents. */
  readonly shape: readonly number[];
  readonly parts: readonly PartInput[];
}

/**
 * The pattern with these parts. Give every tensor that lies the same way the same object: the planner works once per
 * pair of patterns, and recognises an object faster than equal content. Parts may overlap; what several ranks hold is
 * served by all of them.
 *
 * @throws ERR_LAYOUT when a part does not fit the shape, or a rank, offset or stride is not a non-negative integer.
 * @example
 * ```ts
 * const rows = dimRuns([{ start: 0, length: 4 }]);
 * const onRank2 = sidePattern({ dtype: 'f32', shape: [4], parts: [{ dims: [rows], ranks: [2] }] });
 * onRank2.maxRank; // 2
 * ```
 */
export function sidePattern(input: SidePatternInput): SidePattern {
  requireObject('input', input, 'ERR_LAYOUT');
  requireArray('shape', input.shape, 'ERR_LAYOUT');
  requireArray('parts', input.parts, 'ERR_LAYOUT');
  input.parts.forEach((part, i) => {
    requireObject(`parts[${i}]`, part, 'ERR_LAYOUT');
    requireArray(`parts[${i}].dims`, part.dims, 'ERR_LAYOUT');
  });
  return new SidePattern(input);
}

/** Immutable; made by {@link sidePattern}, `patternOf` or `patternOfBoxes`. */
export class SidePattern {
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly parts: readonly Part[];
  /** The highest rank that holds anything, -1 when nobody does. */
  readonly maxRank: number;
  #text: string | undefined;

  /** @internal Call {@link sidePattern}. */
  constructor({ dtype, shape, parts }: SidePatternInput) {
    if (!isDType(dtype)) {
      throw new NcclExtError(
        'ERR_LAYOUT',
        `dtype must be one of ${dtypes.join(' ')}, got ${describe(dtype)}`,
        {
          field: 'dtype',
        },
      );
    }
    this.dtype = dtype;
    this.shape = Object.freeze([...shape]);
    for (let d = 0; d < shape.length; d++) requireCount('shape', d, shape[d]!);
    this.parts = parts.map((part, i) => checkPart(part, shape, dtypeBytes(dtype), i));
    this.maxRank = this.parts.reduce((most, { ranks }) => Math.max(most, ranks.at(-1)!), -1);
    Object.freeze(this);
  }

  /**
   * @internal Canonical JSON: equal content gives equal text, whatever objects it is made of. Runs are
   * [start, length, stride, count]; local offsets follow, because they are dense.
   */
  text(): string {
    this.#text ??= patternText(this);
    return this.#text;
  }
}

function patternText({ dtype, shape, parts }: SidePattern): string {
  let text = `{"dtype":"${dtype}","shape":[${shape.join()}],"parts":[`;
  for (let i = 0; i < parts.length; i++) {
    const { dims, ranks, byteOffset, byteStrides } = parts[i]!;
    text += i === 0 ? '{"dims":[' : ',{"dims":[';
    for (let d = 0; d < dims.length; d++) text += d === 0 ? runsText(dims[d]!) : `,${runsText(dims[d]!)}`;
    text += `],"ranks":[${ranks.length === 1 ? ranks[0] : ranks.join()}],"byteOffset":${byteOffset},"byteStrides":[${byteStrides.join()}]}`;
  }
  return `${text}]}`;
}

function checkPart(part: PartInput, shape: readonly number[], elementBytes: number, index: number): Part {
  const { dims, byteOffset = 0 } = part;
  if (dims.length !== shape.length) {
    throw refuse(index, 'dims', `must have ${shape.length} entries, got ${dims.length}`);
  }
  for (let d = 0; d < dims.length; d++) {
    requireCanonical(dims[d]!, index, d);
    const end = endOfRuns(dims[d]!);
    if (end > shape[d]!) throw refuse(index, `dims[${d}]`, `ends at ${end}, after the extent ${shape[d]}`);
  }
  requireCount(`parts[${index}].byteOffset`, undefined, byteOffset);
  if (!part.byteStrides) {
    return {
      dims,
      ranks: ascending(part.ranks, index),
      byteStrides: denseStrides(dims, elementBytes),
      byteOffset,
    };
  }
  const { byteStrides } = part;
  if (byteStrides.length !== shape.length) {
    throw refuse(index, 'byteStrides', `must have ${shape.length} entries, got ${byteStrides.length}`);
  }
  for (let d = 0; d < dims.length; d++) requireCount(`parts[${index}].byteStrides`, d, byteStrides[d]!);
  return { dims, ranks: ascending(part.ranks, index), byteStrides, byteOffset };
}

const canonical = new WeakSet<DimRuns>();

/** What `dimRuns` makes: global starts ascend, local offsets are dense. Everything in the planner relies on it. */
function requireCanonical(dim: DimRuns, index: number, d: number): void {
  if (canonical.has(dim)) return;
  let local = 0;
  let end = 0;
  for (const run of dim.runs) {
    if (
      run.local !== local ||
      run.start < end ||
      run.stride < run.length ||
      run.length < 1 ||
      run.count < 1
    ) {
      throw refuse(
        index,
        `dims[${d}]`,
        'must ascend without overlap, with dense local offsets, as dimRuns() makes it',
      );
    }
    local += run.length * run.count;
    end = run.start + (run.count - 1) * run.stride + run.length;
  }
  if (dim.extent !== local)
    throw refuse(index, `dims[${d}]`, `has extent ${dim.extent}, but its runs hold ${local}`);
  canonical.add(dim);
}

/** Row-major over local extents. */
function denseStrides(dims: readonly DimRuns[], elementBytes: number): readonly number[] {
  const strides = new Array<number>(dims.length);
  let step = elementBytes;
  for (let d = dims.length - 1; d >= 0; d--) {
    strides[d] = step;
    step *= dims[d]!.extent;
  }
  return strides;
}

function ascending(ranks: ArrayLike<number>, index: number): Int32Array {
  if (ranks.length === 0) throw refuse(index, 'ranks', 'must name at least one rank');
  let sorted = true;
  for (let i = 0; i < ranks.length; i++) {
    const rank = ranks[i]!;
    if (!Number.isInteger(rank) || rank < 0 || rank > 0x7fff_ffff) {
      throw refuse(index, `ranks[${i}]`, `must be a rank from 0 to 2^31 - 1, got ${rank}`);
    }
    if (i > 0 && ranks[i - 1]! >= rank) sorted = false;
  }
  if (sorted) return Int32Array.from(ranks);
  return Int32Array.from(new Set(Array.from(ranks))).sort();
}

function requireCount(list: string, at: number | undefined, value: number): void {
  if (Number.isSafeInteger(value) && value >= 0) return;
  const field = at === undefined ? list : `${list}[${at}]`;
  throw new NcclExtError('ERR_LAYOUT', `${field} must be an integer from 0 to 2^53 - 1, got ${value}`, {
    field,
  });
}

function refuse(index: number, what: string, problem: string): NcclExtError {
  const field = `parts[${index}].${what}`;
  return new NcclExtError('ERR_LAYOUT', `${field} ${problem}`, { field });
}
