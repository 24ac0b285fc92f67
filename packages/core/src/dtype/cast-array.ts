// SPDX-License-Identifier: Apache-2.0
// Casts whole arrays of elements between float types by the rules of float-format.ts.

import { NcclExtError } from '../errors/nccl-ext-error.js';
import { apartFrom, elementCount, requireBytes } from './byte-arrays.js';
import { type DType, dtypeBytes, isFloatDType } from './dtype.js';
import { loadTile, storeTile, tileElements } from './float-tile.js';

/**
 * Converts every element of `source` to the dtype `to`, rounding once, to nearest even, straight from the source type.
 * The same dtype on both sides copies the bytes unchanged. Both arrays may start at any byte offset and may overlap:
 * the result is as if all of `source` had been read first.
 *
 * @param source bytes of n elements of `from`
 * @param destination bytes of n elements of `to`
 * @throws {NcclExtError} ERR_CAST if {@link isCastable} says no, ERR_INVALID_ARGUMENT if the lengths do not match.
 *
 * @example
 * ```ts
 * const weights = new Float32Array([1, 1.00390625, -0]);
 * const wire = new Uint8Array(weights.length * 2);
 * castArray('f32', new Uint8Array(weights.buffer), 'bf16', wire);
 * // wire holds 0x3f80, 0x3f80 (a tie goes to even), 0x8000
 * ```
 */
export function castArray(from: DType, source: Uint8Array, to: DType, destination: Uint8Array): void {
  if (!isCastable(from, to)) throw refusal(from, to);
  const count = elementCount(from, source, 'source');
  requireBytes(destination, count * dtypeBytes(to), 'destination');
  if (from === to || !isFloatDType(from) || !isFloatDType(to)) {
    destination.set(source);
    return;
  }
  const input = apartFrom(destination, source);
  const rounding = to === 'f32' ? 'nearest' : 'odd';
  for (let start = 0; start < count; start += tileElements) {
    const length = Math.min(tileElements, count - start);
    loadTile(from, input, start, length, rounding);
    storeTile(to, destination, start, length);
  }
}

/** Whether {@link castArray} takes this pair: identical dtypes, or both among f64 f32 f16 bf16 f8e4m3 f8e5m2. */
export function isCastable(from: DType, to: DType): boolean {
  return from === to || (isFloatDType(from) && isFloatDType(to));
}

function refusal(from: DType, to: DType): NcclExtError {
  const [dtype, field] = isFloatDType(from) ? [to, 'to'] : [from, 'from'];
  const packed = dtype === 'f4e2m1x2';
  return new NcclExtError(
    'ERR_CAST',
    packed
      ? `cannot cast ${from} to ${to}: an element of f4e2m1x2 packs two values`
      : `cannot cast ${from} to ${to}: ${dtype} is no float type; only f64, f32, f16, bf16, f8e4m3, f8e5m2 convert`,
    {
      field,
      help: packed
        ? 'Use packF4 or unpackF4.'
        : `Give both sides the same dtype, or convert ${dtype} yourself.`,
    },
  );
}
