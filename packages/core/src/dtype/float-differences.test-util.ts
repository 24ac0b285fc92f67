// SPDX-License-Identifier: Apache-2.0
// Where what the code makes of floats differs from what the oracle makes of them.

import { castArray } from './cast-array.js';
import { dtypeBytes, type FloatDType } from './dtype.js';
import { packF4 } from './f4.js';
import { above, expectedBits, finite, type Narrow, type Target } from './float-oracle.test-util.js';

export function patternAt(bytes: Uint8Array, size: number, index: number): bigint {
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  if (size === 8) return view.getBigUint64(index * 8, true);
  if (size === 4) return BigInt(view.getUint32(index * 4, true));
  return BigInt(size === 2 ? view.getUint16(index * 2, true) : view.getUint8(index));
}

export function convert(from: FloatDType, source: Uint8Array, to: Target): (index: number) => bigint {
  const count = source.byteLength / dtypeBytes(from);
  if (to !== 'e2m1') {
    const out = new Uint8Array(count * dtypeBytes(to));
    castArray(from, source, to, out);
    return (index) => patternAt(out, dtypeBytes(to), index);
  }
  const packed = new Uint8Array(count / 2);
  packF4(from, source, packed);
  return (index) => BigInt(index % 2 === 0 ? packed[index >> 1]! % 16 : packed[index >> 1]! >> 4);
}

/** The first few differences between what the code makes of `source` and what the oracle makes of its values. */
export function differences(
  from: FloatDType,
  source: Uint8Array,
  values: (index: number) => number,
  to: Target,
): string[] {
  const got = convert(from, source, to);
  const found: string[] = [];
  for (let i = 0; i < source.byteLength / dtypeBytes(from) && found.length < 5; i++) {
    const value = values(i);
    const want = expectedBits(to, value);
    if (got(i) !== want) {
      const input = patternAt(source, dtypeBytes(from), i).toString(16);
      found.push(`${input} (${value}) became ${got(i).toString(16)}, not ${want.toString(16)}`);
    }
  }
  return found;
}

export const bytesOf = (array: Float32Array | Float64Array | Uint32Array | BigUint64Array): Uint8Array =>
  new Uint8Array(array.buffer, array.byteOffset, array.byteLength);

/** Every value of the type, every midpoint, both signs. */
export function turningPoints(name: Narrow): number[] {
  const points: number[] = [];
  for (const [p, value] of finite[name].entries()) {
    const middle = (value + above(name, p)) / 2;
    points.push(value, -value, middle, -middle);
  }
  const end = above(name, finite[name].length - 1);
  return [...points, end, -end];
}
