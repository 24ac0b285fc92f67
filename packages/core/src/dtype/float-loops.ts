// SPDX-License-Identifier: Apache-2.0
// Applies widenBits and narrowBits to arrays fast: by table where one fits a cache, in a few operations for bf16.

import { f32NaN, type NarrowFormat, narrowBits, narrowFormats, widenBits } from './float-format.js';

/** out[i] = widenBits(patterns[i]) for i below `count`, for bf16: f32 without its lower half. */
export function widenBf16(patterns: Uint16Array, out: Int32Array, count: number): void {
  for (let i = 0; i < count; i++) {
    const pattern = patterns[i]!;
    out[i] = (pattern & 0x7fff) > 0x7f80 ? f32NaN : pattern << 16;
  }
}

/** out[i] = widenBits(patterns[i]) for i below `count`, for f16 and fp8. */
export function widenByTable(
  format: NarrowFormat,
  patterns: Uint8Array | Uint16Array,
  out: Int32Array,
  count: number,
): void {
  const table = wideTable(format);
  for (let i = 0; i < count; i++) out[i] = table[patterns[i]!]!;
}

/** out[i] = narrowBits(bits[i]) for i below `count`, for bf16: the carry of the rounding reaches infinity by itself. */
export function narrowBf16(bits: Int32Array, out: Uint16Array, count: number): void {
  for (let i = 0; i < count; i++) {
    const value = bits[i]!;
    const rounded = (value + 0x7fff + ((value >>> 16) & 1)) >>> 16;
    out[i] = (value & 0x7fffffff) > 0x7f800000 ? 0x7fff : rounded;
  }
}

/** out[i] = narrowBits(bits[i]) for i below `count`, for f16. */
export function narrowF16(bits: Int32Array, out: Uint16Array, count: number): void {
  for (let i = 0; i < count; i++) out[i] = narrowBits(bits[i]!, narrowFormats.f16);
}

/** out[i] = narrowBits(bits[i]) for i below `count`, for fp8. */
export function narrowByTable(format: NarrowFormat, bits: Int32Array, out: Uint8Array, count: number): void {
  const table = narrowTable(format);
  for (let i = 0; i < count; i++) {
    const value = bits[i]!;
    out[i] = table[((value >>> 18) & 0x3ffe) | ((value & 0x7ffff) === 0 ? 0 : 1)]!;
  }
}

const wideTables = new Map<NarrowFormat, Int32Array>();

function wideTable(format: NarrowFormat): Int32Array {
  let table = wideTables.get(format);
  if (table === undefined) {
    const patterns = { length: 2 << format.signBit };
    table = Int32Array.from(patterns, (_, pattern) => widenBits(pattern, format));
    wideTables.set(format, table);
  }
  return table;
}

const narrowTables = new Map<NarrowFormat, Uint8Array>();

/** Indexed by sign, exponent and four bits of fraction (one more than any fp8 keeps), then whether a lower bit is set. */
function narrowTable(format: NarrowFormat): Uint8Array {
  let table = narrowTables.get(format);
  if (table === undefined) {
    const upper = 2 ** 13;
    table = Uint8Array.from({ length: 2 * upper }, (_, i) => narrowBits(((i >>> 1) << 19) | (i & 1), format));
    narrowTables.set(format, table);
  }
  return table;
}
