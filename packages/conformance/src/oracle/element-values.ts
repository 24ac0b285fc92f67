// SPDX-License-Identifier: Apache-2.0
// Writes the values that the elements of a shard must have, straight from their global indices.

import { castArray, type DType, dtypeBytes, isFloatDType } from '@nccl-ext/core';
import { castValues } from './cast-values.js';
import { blockElements, blockKeys, mix32, type ValueSource } from './mix.js';
import type { Shard } from './shard.js';

/** The dtypes of a tensor on its two sides; equal unless the transfer casts. */
export interface DTypePair {
  readonly source: DType;
  readonly destination: DType;
}

/** Which side's bytes are written. */
export type SideName = 'source' | 'destination';

/**
 * Fills `out` with local elements [first, first + n) of a shard as `side` stores them; n is what `out` holds. Bits are arbitrary,
 * NaN payloads included, unless the tensor converts: then they are numbers that show what the cast does.
 *
 * @param out starts at a multiple of the element size within its ArrayBuffer
 */
export function writeElements(
  out: Uint8Array,
  side: SideName,
  dtypes: DTypePair,
  values: ValueSource,
  shard: Shard,
  first = 0,
): void {
  const { source, destination } = dtypes;
  if (source === destination || side === 'source') {
    write(out, source, source !== destination, values, shard, first);
    return;
  }
  const count = out.byteLength / dtypeBytes(destination);
  const before = new Uint8Array(count * dtypeBytes(source));
  write(before, source, true, values, shard, first);
  castArray(source, before, destination, out);
}

/** Writes elements whose global indices start at `global` and are consecutive, into positions from `at`. */
type RunWriter = (at: number, global: number, length: number) => void;

function write(
  out: Uint8Array,
  dtype: DType,
  converts: boolean,
  values: ValueSource,
  shard: Shard,
  first: number,
): void {
  const bytes = dtypeBytes(dtype);
  const writer =
    converts && isFloatDType(dtype) ? castWriter(out, dtype, values) : bitWriter(out, dtype, values);
  shard.forEachRun(first, out.byteLength / bytes, (at, global, length) => {
    // Keys change every 2^32 elements.
    for (let done = 0; done < length; ) {
      const step = Math.min(length - done, blockElements - ((global + done) % blockElements));
      writer(at + done, global + done, step);
      done += step;
    }
  });
}

function bitWriter(out: Uint8Array, dtype: DType, values: ValueSource): RunWriter {
  const keysOf = keyCache(values);
  switch (dtypeBytes(dtype)) {
    case 8: {
      const words = new Uint32Array(out.buffer, out.byteOffset, out.byteLength / 4);
      return (at, global, length) => {
        const [lowA, lowB, highA, highB] = keysOf(global);
        const index = global % blockElements;
        for (let i = 0; i < length; i++) {
          words[2 * (at + i)] = mix32(index + i, lowA, lowB);
          words[2 * (at + i) + 1] = mix32(index + i, highA, highB);
        }
      };
    }
    case 4:
      return narrowWriter(new Uint32Array(out.buffer, out.byteOffset, out.byteLength / 4), keysOf, 0, -1);
    case 2:
      return narrowWriter(new Uint16Array(out.buffer, out.byteOffset, out.byteLength / 2), keysOf, 0, 0xffff);
    default:
      return narrowWriter(out, keysOf, 8 * values.pass, dtype === 'bool' ? 1 : 0xff);
  }
}

function narrowWriter(
  elements: Uint8Array | Uint16Array | Uint32Array,
  keysOf: (global: number) => ReturnType<typeof blockKeys>,
  shift: number,
  mask: number,
): RunWriter {
  return (at, global, length) => {
    const [lowA, lowB] = keysOf(global);
    const index = global % blockElements;
    for (let i = 0; i < length; i++) elements[at + i] = (mix32(index + i, lowA, lowB) >>> shift) & mask;
  };
}

function castWriter(
  out: Uint8Array,
  dtype: Parameters<typeof castValues>[0],
  values: ValueSource,
): RunWriter {
  const bytes = dtypeBytes(dtype);
  const view = new DataView(out.buffer, out.byteOffset, out.byteLength);
  const castValue = castValues(dtype);
  const keysOf = keyCache(values);
  const put = (at: number, low: number, high: number): void => {
    if (bytes === 1) view.setUint8(at, low);
    else if (bytes === 2) view.setUint16(2 * at, low, true);
    else {
      view.setUint32(bytes * at, low, true);
      if (bytes === 8) view.setUint32(8 * at + 4, high, true);
    }
  };
  return (at, global, length) => {
    const [lowA, lowB, highA, highB] = keysOf(global);
    const index = global % blockElements;
    for (let i = 0; i < length; i++) {
      const high = mix32(index + i, highA, highB);
      // Another pass draws other numbers, as it does for bits.
      const low = (mix32(index + i, lowA, lowB) << (8 * values.pass)) >>> 0;
      const [lowWord, highWord] = castValue(low, high);
      put(at + i, lowWord, highWord);
    }
  };
}

function keyCache(values: ValueSource): (global: number) => ReturnType<typeof blockKeys> {
  let known = -1;
  let keys = blockKeys(values, 0);
  return (global) => {
    const block = Math.floor(global / blockElements);
    if (block !== known) {
      known = block;
      keys = blockKeys(values, block);
    }
    return keys;
  };
}
