// SPDX-License-Identifier: Apache-2.0
// Packs floats into f4e2m1x2, two 4-bit values in a byte, and unpacks them, by the rules of float-format.ts.

import { NcclExtError } from '../errors/nccl-ext-error.js';
import { apartFrom, elementCount, requireByteArray, requireBytes } from './byte-arrays.js';
import { dtypeBytes, type FloatDType, requireFloatDType } from './dtype.js';
import { narrowBits, narrowFormats, widenBits } from './float-format.js';
import { loadTile, storeTile, tile, tileElements } from './float-tile.js';

const { e2m1 } = narrowFormats;

/**
 * Rounds each float to the nearest of 0, 0.5, 1, 1.5, 2, 3, 4, 6 with its sign (ties to the even pattern, beyond 6 to
 * 6, NaN to +6) and packs pairs into bytes: the even index into bits 0 to 3, the odd one into bits 4 to 7.
 * The arrays may start at any byte offset and may overlap.
 *
 * @param source bytes of 2n elements of `from`
 * @param destination n bytes
 * @throws {NcclExtError} ERR_INVALID_ARGUMENT if the number of elements is odd or the lengths do not match.
 *
 * @example
 * ```ts
 * const packed = new Uint8Array(1);
 * packF4('f32', new Uint8Array(new Float32Array([0.5, -6]).buffer), packed); // packed holds 0xf1
 * ```
 */
export function packF4(from: FloatDType, source: Uint8Array, destination: Uint8Array): void {
  requireFloatDType(from, 'from');
  const count = elementCount(from, source, 'source');
  if (count % 2 !== 0) {
    throw new NcclExtError(
      'ERR_INVALID_ARGUMENT',
      `source holds ${count} elements; an even number is needed, because a byte of f4e2m1x2 packs two`,
      { field: 'source', expected: 'an even number of elements', seen: count },
    );
  }
  requireBytes(destination, count / 2, 'destination');
  const input = apartFrom(destination, source);
  for (let start = 0; start < count; start += tileElements) {
    const length = Math.min(tileElements, count - start);
    loadTile(from, input, start, length, 'odd');
    for (let i = 0; i < length; i += 2) {
      destination[(start + i) / 2] = narrowBits(tile[i]!, e2m1) | (narrowBits(tile[i + 1]!, e2m1) << 4);
    }
  }
}

/**
 * The values of packed bytes as elements of `to`, exactly; the inverse of {@link packF4}.
 *
 * @param source n bytes
 * @param destination bytes of 2n elements of `to`
 * @throws {NcclExtError} ERR_INVALID_ARGUMENT if the lengths do not match.
 *
 * @example
 * ```ts
 * const values = new Float32Array(2);
 * unpackF4(new Uint8Array([0xf1]), 'f32', new Uint8Array(values.buffer)); // values holds 0.5, -6
 * ```
 */
export function unpackF4(source: Uint8Array, to: FloatDType, destination: Uint8Array): void {
  requireFloatDType(to, 'to');
  requireByteArray(source, 'source');
  const count = source.byteLength * 2;
  requireBytes(destination, count * dtypeBytes(to), 'destination');
  const input = apartFrom(destination, source);
  for (let start = 0; start < count; start += tileElements) {
    const length = Math.min(tileElements, count - start);
    for (let i = 0; i < length; i += 2) {
      const packed = input[(start + i) / 2]!;
      tile[i] = widenBits(packed & 15, e2m1);
      tile[i + 1] = widenBits(packed >>> 4, e2m1);
    }
    storeTile(to, destination, start, length);
  }
}
