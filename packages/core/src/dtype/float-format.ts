// SPDX-License-Identifier: Apache-2.0
// The one definition of how floats convert, in 32-bit integer arithmetic that WebAssembly and CUDA repeat bit for bit.
//
// THE RULES
//
// 1. One rounding. A conversion takes the exact value of the source element to the nearest value of the target, ties to
//    the even pattern. f64 goes to bf16, f16 and fp8 without the second rounding that a stop at f32 would add.
// 2. Subnormals are exact on both sides; nothing is flushed to zero. The sign of a zero, and of a result that
//    underflows to zero, is the sign of the source.
// 3. NaN. A conversion that meets a NaN gives the target's canonical NaN, whatever the sign and payload of the source:
//        f64 0x7FFFFFFFFFFFFFFF   f32 0x7FFFFFFF   f16, bf16 0x7FFF   f8e4m3, f8e5m2 0x7F
//    e2m1 has no NaN: it gives +6, the greatest value (0x7), as CUDA's __nv_fp4 conversions do.
// 4. f64, f32, f16 and bf16 overflow to infinity as IEEE 754 says (from the midpoint between the greatest finite value
//    and the next power of two on), and keep infinities.
// 5. f8e4m3, f8e5m2 and e2m1 saturate: finite values beyond the greatest magnitude (448, 57344, 6) and infinities of
//    either sign become that magnitude with the sign kept, as CUDA's __NV_SATFINITE does. So no conversion makes an
//    f8e5m2 infinity (0x7C, 0xFC); one that is met as a source is an infinity. f8e4m3 has none: 0x7F and 0xFF are NaN.
// 6. f4e2m1x2 packs two e2m1 values in a byte: the one of even index in bits 0 to 3, the odd one in bits 4 to 7.
// 7. Same type to same type is no conversion: the bytes are copied, NaN payloads and f8e5m2 infinities included.
// 8. Elements are little-endian in memory, as on every platform that NCCL supports.
//
// HOW
//
// Every value of f16, bf16, fp8 and e2m1 is a value of f32, so widening to f32 (widenBits) is exact, and the rounding
// from f32 (narrowBits) is the only one of narrow -> narrow. f64 -> narrow first cuts to f32 by round-to-odd (oddBits):
// truncate, then set the last bit if anything was lost. The result lies between the same two neighbours of the narrow
// type, and on the same side of their midpoint, as the f64 value, because f32 has at least two bits more than any narrow
// type at every magnitude (24 against 11, and 2^-149 against 2^-133 among subnormals); so narrowBits rounds as if from
// f64. f64 -> f32 is the hardware's conversion (Math.fround), and what widens to f64 does so by way of f32, exactly.

/** A type narrower than f32; all patterns are magnitudes, without the sign bit. */
export interface NarrowFormat {
  /** The sign bit's position. */
  readonly signBit: number;
  /** Stored bits of the significand. */
  readonly mantissa: number;
  /** 127, the bias of f32, less the bias of this type. */
  readonly rebias: number;
  /** The greatest finite value. */
  readonly largest: number;
  /** Infinity; 0 where the type has none. */
  readonly infinity: number;
  /** What overflow and infinities become. */
  readonly overflow: number;
  /** What a NaN becomes, sign bit clear. */
  readonly nan: number;
}

const f16: NarrowFormat = {
  signBit: 15,
  mantissa: 10,
  rebias: 112,
  largest: 0x7bff,
  infinity: 0x7c00,
  overflow: 0x7c00,
  nan: 0x7fff,
};
const bf16: NarrowFormat = {
  signBit: 15,
  mantissa: 7,
  rebias: 0,
  largest: 0x7f7f,
  infinity: 0x7f80,
  overflow: 0x7f80,
  nan: 0x7fff,
};
const f8e4m3: NarrowFormat = {
  signBit: 7,
  mantissa: 3,
  rebias: 120,
  largest: 0x7e,
  infinity: 0,
  overflow: 0x7e,
  nan: 0x7f,
};
const f8e5m2: NarrowFormat = {
  signBit: 7,
  mantissa: 2,
  rebias: 112,
  largest: 0x7b,
  infinity: 0x7c,
  overflow: 0x7b,
  nan: 0x7f,
};
const e2m1: NarrowFormat = {
  signBit: 3,
  mantissa: 1,
  rebias: 126,
  largest: 7,
  infinity: 0,
  overflow: 7,
  nan: 7,
};

/** The types narrower than f32; `e2m1` is one half of an f4e2m1x2 byte. */
export const narrowFormats: {
  readonly [Name in 'f16' | 'bf16' | 'f8e4m3' | 'f8e5m2' | 'e2m1']: NarrowFormat;
} = { f16, bf16, f8e4m3, f8e5m2, e2m1 };

/** The canonical f32 NaN. */
export const f32NaN = 0x7fffffff;

const f32Infinity = 0x7f800000;
const f32Largest = 0x7f7fffff;

/** The pattern nearest to the f32 value whose bits are `bits`, taken as a signed 32-bit integer. */
export function narrowBits(bits: number, format: NarrowFormat): number {
  const { signBit, mantissa, rebias, overflow, nan } = format;
  const magnitude = bits & 0x7fffffff;
  if (magnitude > f32Infinity) return nan;
  const sign = (bits >>> 31) << signBit;
  const exponent = (magnitude >>> 23) - rebias;
  // bf16 has the exponents of f32 (rebias 0), so there subnormals round as normals do.
  if (exponent >= 1 || rebias === 0) {
    // Rounding may carry into the exponent, which is the next pattern up, as it should be.
    const rounded = roundOff(magnitude - (rebias << 23), 23 - mantissa);
    return sign | Math.min(rounded, overflow);
  }
  // Subnormal, with 1 - exponent bits less. Dropping 25 of a significand's 24 bits already gives zero.
  const dropped = Math.min(25, 24 - mantissa - exponent);
  return sign | roundOff((magnitude & 0x7fffff) | 0x800000, dropped);
}

/** `value` / 2^`dropped` as an integer, to nearest even. */
function roundOff(value: number, dropped: number): number {
  const odd = (value >>> dropped) & 1;
  return (value + (1 << (dropped - 1)) - 1 + odd) >>> dropped;
}

/** The f32 bits, as a signed 32-bit integer, of the value that `pattern` stands for; exact. */
export function widenBits(pattern: number, format: NarrowFormat): number {
  const { signBit, mantissa, rebias, largest, infinity } = format;
  const magnitude = pattern & ((1 << signBit) - 1);
  const sign = (pattern >>> signBit) << 31;
  if (magnitude > largest) return magnitude === infinity ? sign | f32Infinity : f32NaN;
  // bf16 has the exponents of f32 (rebias 0), so its subnormals are subnormals there too.
  if (magnitude >>> mantissa !== 0 || rebias === 0) {
    return sign | ((magnitude << (23 - mantissa)) + (rebias << 23));
  }
  if (magnitude === 0) return sign;
  const top = 31 - Math.clz32(magnitude);
  return sign | ((top + rebias + 1 - mantissa) << 23) | ((magnitude << (23 - top)) & 0x7fffff);
}

/** The f32 bits, as a signed 32-bit integer, of an f64 (two 32-bit words) rounded to odd; only for narrowBits. */
export function oddBits(high: number, low: number): number {
  const sign = high & 0x80000000;
  const magnitude = high & 0x7fffffff;
  const exponent = (magnitude >>> 20) - 896; // the field in f32: 1023 - 127 less
  const fraction = ((magnitude & 0xfffff) << 3) | (low >>> 29);
  const sticky = (low & 0x1fffffff) === 0 ? 0 : 1;
  if (exponent >= 1 && exponent <= 254) return sign | (exponent << 23) | fraction | sticky;
  if (magnitude >= 0x7ff00000) return fraction | sticky ? f32NaN : sign | f32Infinity;
  if (exponent > 254) return sign | f32Largest;
  const shift = 1 - exponent;
  if (shift > 24) return sign | (magnitude | low ? 1 : 0);
  const significand = fraction | 0x800000;
  const lost = (significand & ((1 << shift) - 1)) | sticky;
  return sign | (significand >>> shift) | (lost === 0 ? 0 : 1);
}
