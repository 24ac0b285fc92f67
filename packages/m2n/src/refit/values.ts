// SPDX-License-Identifier: Apache-2.0
// Where the values of a refit come from: a checkpoint, or a function of (tensor, index) when there is only a model.

import { type DimRuns, type DType, dtypeBytes, isFloatDType, localToGlobal } from '@nccl-ext/core';
import type { Checkpoint } from '../safetensors/open-checkpoint.js';

/** Fills dense, row-major slices of global tensors. */
export interface ValueSource {
  /** What a report calls it. */
  readonly name: string;
  /** Fills `target` with what `dims` (one per dimension) hold of `tensor`, in local order. */
  read(tensor: string, dims: readonly DimRuns[], target: Uint8Array): Promise<void>;
  /** What the values of a tensor are made from, where a GPU can make them too; absent: they are data. */
  readonly generated?: (tensor: string) => GeneratedTensor;
}

/** A tensor whose values follow from where they are. */
export interface GeneratedTensor {
  readonly shape: readonly number[];
  readonly dtype: DType;
  /** Word w of the tensor's bytes is a mix of this and w, */
  readonly seed: number;
  /** masked by the first of these where w is even, else by the second. Unsigned, as the seed. */
  readonly masks: readonly [number, number];
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
    generated(tensor) {
      const { shape, dtype } = shapes.get(tensor)!;
      const [even, odd] = wordMasks(dtype);
      return { shape, dtype, seed: seedOf(tensor) >>> 0, masks: [even >>> 0, odd >>> 0] };
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
  const masks = wordMasks(dtype);
  const last = dims.at(-1) ?? { extent: 1, runs: [{ start: 0, length: 1, stride: 1, count: 1, local: 0 }] };
  const inner = shape.at(-1) ?? 1;
  let at = 0;
  for (const row of rowsOf(dims.slice(0, -1), shape.slice(0, -1))) {
    for (const { start, length, stride, count } of last.runs) {
      for (let i = 0; i < count; i++) {
        for (let done = 0; done < length; done += tileElements) {
          const elements = Math.min(tileElements, length - done);
          target.set(tileOf(bytes, masks, seed, row * inner + start + i * stride + done, elements), at);
          at += elements * bytes;
        }
      }
    }
  }
}

/** Elements per tile: values are made in aligned words, and the target may lie at any byte. */
const tileElements = 4096;
const words = new Uint32Array(2 * tileElements + 2);
const wordBytes = new Uint8Array(words.buffer);

/** Bytes of `elements` elements from the linear index `first` on. Word w of a tensor's bytes is a mix of its name and w. */
function tileOf(
  bytes: number,
  masks: readonly [number, number],
  seed: number,
  first: number,
  elements: number,
): Uint8Array {
  const firstByte = first * bytes;
  const firstWord = 2 * Math.floor(firstByte / 8);
  const count = Math.ceil((firstByte + elements * bytes) / 4) - firstWord;
  for (let i = 0; i < count; i++) {
    const word = firstWord + i;
    words[i] = mix(mix(seed ^ Math.floor(word / 4294967296)) ^ (word | 0)) & masks[i & 1]!;
  }
  const skip = firstByte - 4 * firstWord;
  return wordBytes.subarray(skip, skip + elements * bytes);
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

/** The finaliser of MurmurHash3. */
function mix(value: number): number {
  let h = value | 0;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return h ^ (h >>> 16);
}

/**
 * Masks of even and odd words that keep all bits but the top one of a float's exponent, so that it is neither infinite nor NaN; of a bool
 * the lowest bit.
 */
function wordMasks(dtype: DType): readonly [number, number] {
  if (dtype === 'bool') return [0x01010101, 0x01010101];
  if (!isFloatDType(dtype)) return [-1, -1];
  const masks = { 1: 0xbfbfbfbf, 2: 0xbfffbfff, 4: 0xbfffffff, 8: 0xbfffffff };
  const mask = masks[dtypeBytes(dtype) as keyof typeof masks];
  return dtype === 'f64' ? [-1, mask] : [mask, mask];
}

function seedOf(name: string): number {
  let h = 0x811c9dc5;
  for (let i = 0; i < name.length; i++) h = Math.imul(h ^ name.charCodeAt(i), 0x01000193);
  return h;
}
