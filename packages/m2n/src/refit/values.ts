// SPDX-License-Identifier: Apache-2.0
// Where the values of a refit come from: a checkpoint, or a function of (tensor, index) when there is only a model.

import { type DimRuns, type DType, dtypeBytes, localToGlobal } from '@nccl-ext/core';
import type { Checkpoint } from '../safetensors/open-checkpoint.js';

/** Fills dense, row-major slices of global tensors. */
export interface ValueSource {
  /** What a report calls it. */
  readonly name: string;
  /** Fills `target` with what `dims` (one per dimension) hold of `tensor`, in local order. */
  read(tensor: string, dims: readonly DimRuns[], target: Uint8Array): Promise<void>;
}

/** Values of a safetensors checkpoint. */
export function checkpointValues(checkpoint: Checkpoint): ValueSource {
  return {
    name: checkpoint.path,
    read: (tensor, dims, target) => checkpoint.readSlice(tensor, dims, target),
  };
}

/**
 * Values that differ for every element of every tensor: a 64-bit mix of the tensor's name and the global index, cut to the dtype. In
 * floats the top bit of the exponent is cleared, so that every value is finite and casts are exact comparisons.
 *
 * @param shapes shape and dtype of every tensor.
 */
export function syntheticValues(
  shapes: ReadonlyMap<string, { readonly shape: readonly number[]; readonly dtype: DType }>,
): ValueSource {
  return {
    name: 'synthetic values',
    read(tensor, dims, target) {
      const { shape, dtype } = shapes.get(tensor)!;
      fillSynthetic(seedOf(tensor), shape, dtype, dims, target);
      return Promise.resolve();
    },
  };
}

function fillSynthetic(
  seed: number,
  shape: readonly number[],
  dtype: DType,
  dims: readonly DimRuns[],
  target: Uint8Array,
): void {
  const bytes = dtypeBytes(dtype);
  const mask = exponentMask(dtype);
  const rows = dims.slice(0, -1);
  const last = dims.at(-1) ?? { extent: 1, runs: [{ start: 0, length: 1, stride: 1, count: 1, local: 0 }] };
  const inner = shape.at(-1) ?? 1;
  let at = 0;
  for (const row of rowsOf(rows, shape.slice(0, -1))) {
    for (const { start, length, stride, count } of last.runs) {
      for (let i = 0; i < count; i++) {
        const first = row * inner + start + i * stride;
        for (let k = 0; k < length; k++, at += bytes) writeElement(target, at, bytes, mask, seed, first + k);
      }
    }
  }
}

/** Linear index over the leading dimensions of every local row, in local order. */
function* rowsOf(dims: readonly DimRuns[], shape: readonly number[]): Generator<number> {
  const extents = dims.map((dim) => dim.extent);
  const total = extents.reduce((product, extent) => product * extent, 1);
  for (let row = 0; row < total; row++) {
    let rest = row;
    let linear = 0;
    let scale = 1;
    for (let d = dims.length - 1; d >= 0; d--) {
      linear += localToGlobal(dims[d]!, rest % extents[d]!) * scale;
      rest = Math.floor(rest / extents[d]!);
      scale *= shape[d]!;
    }
    yield linear;
  }
}

function writeElement(
  target: Uint8Array,
  at: number,
  bytes: number,
  mask: number,
  seed: number,
  index: number,
): void {
  // Two rounds of a 32-bit mix over both halves of the index (constants of MurmurHash3's finaliser).
  let low = mix(seed ^ (index | 0));
  const high = mix(low ^ Math.floor(index / 4294967296) ^ 0x9e3779b9);
  low = mix(low ^ high);
  for (let b = 0; b < bytes; b++) target[at + b] = ((b < 4 ? low : high) >>> (8 * (b & 3))) & 0xff;
  target[at + bytes - 1]! &= mask;
}

function mix(value: number): number {
  let h = value | 0;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return h ^ (h >>> 16);
}

/** Clears the top exponent bit of the last byte of a float, so that it is neither infinite nor NaN. */
function exponentMask(dtype: DType): number {
  const floats: Partial<Record<DType, number>> = {
    f64: 0xbf,
    f32: 0xbf,
    f16: 0xbf,
    bf16: 0xbf,
    f8e4m3: 0xbf,
    f8e5m2: 0xbf,
  };
  if (dtype === 'bool') return 1;
  return floats[dtype] ?? 0xff;
}

function seedOf(name: string): number {
  let h = 0x811c9dc5;
  for (let i = 0; i < name.length; i++) h = Math.imul(h ^ name.charCodeAt(i), 0x01000193);
  return h;
}
