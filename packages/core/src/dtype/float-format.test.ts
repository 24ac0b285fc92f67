// SPDX-License-Identifier: Apache-2.0
// Proves the conversion rules against an oracle that knows only what the patterns stand for and compares distances.

import { getFloat16, setFloat16 } from '@petamoriken/float16';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { castArray } from './cast-array.js';
import { dtypeBytes, type FloatDType } from './dtype.js';
import { packF4, unpackF4 } from './f4.js';
import { narrowBits, narrowFormats, widenBits } from './float-format.js';

type Narrow = 'f16' | 'bf16' | 'f8e4m3' | 'f8e5m2' | 'e2m1';
type Target = FloatDType | 'e2m1';

// ---- The oracle ----

interface Spec {
  readonly exponentBits: number;
  readonly mantissaBits: number;
  readonly nanPattern: number;
  /** What overflow gives. */
  readonly overflow: number;
  isNan(magnitude: number): boolean;
  isInfinity(magnitude: number): boolean;
}

const never = (): boolean => false;
const specs: { readonly [N in Narrow]: Spec } = {
  f16: {
    exponentBits: 5,
    mantissaBits: 10,
    nanPattern: 0x7fff,
    overflow: 0x7c00,
    isNan: (p) => p > 0x7c00,
    isInfinity: (p) => p === 0x7c00,
  },
  bf16: {
    exponentBits: 8,
    mantissaBits: 7,
    nanPattern: 0x7fff,
    overflow: 0x7f80,
    isNan: (p) => p > 0x7f80,
    isInfinity: (p) => p === 0x7f80,
  },
  f8e4m3: {
    exponentBits: 4,
    mantissaBits: 3,
    nanPattern: 0x7f,
    overflow: 0x7e,
    isNan: (p) => p === 0x7f,
    isInfinity: never,
  },
  f8e5m2: {
    exponentBits: 5,
    mantissaBits: 2,
    nanPattern: 0x7f,
    overflow: 0x7b,
    isNan: (p) => p > 0x7c,
    isInfinity: (p) => p === 0x7c,
  },
  e2m1: {
    exponentBits: 2,
    mantissaBits: 1,
    nanPattern: 7,
    overflow: 7,
    isNan: never,
    isInfinity: never,
  },
};
const narrowNames = Object.keys(specs) as Narrow[];
const narrowDTypes = ['f16', 'bf16', 'f8e4m3', 'f8e5m2'] as const;
const floats: readonly FloatDType[] = ['f64', 'f32', ...narrowDTypes];

const bitsOf = (name: Narrow): number => 1 + specs[name].exponentBits + specs[name].mantissaBits;

/** The value of a pattern from the definition of a binary float. */
function valueOfPattern(name: Narrow, pattern: number): number {
  const { exponentBits, mantissaBits, isNan, isInfinity } = specs[name];
  const signWeight = 2 ** (exponentBits + mantissaBits);
  const sign = pattern >= signWeight ? -1 : 1;
  const magnitude = pattern % signWeight;
  if (isNan(magnitude)) return Number.NaN;
  if (isInfinity(magnitude)) return sign * Number.POSITIVE_INFINITY;
  const bias = 2 ** (exponentBits - 1) - 1;
  const field = Math.floor(magnitude / 2 ** mantissaBits);
  const fraction = (magnitude % 2 ** mantissaBits) / 2 ** mantissaBits;
  return sign * (field === 0 ? fraction * 2 ** (1 - bias) : (1 + fraction) * 2 ** (field - bias));
}

/** Values of the patterns 0, 1, 2, ... up to the greatest finite one, ascending. */
const finite = Object.fromEntries(
  narrowNames.map((name) => {
    const values: number[] = [];
    for (let p = 0; Number.isFinite(valueOfPattern(name, p)) && p < 2 ** (bitsOf(name) - 1); p++) {
      values.push(valueOfPattern(name, p));
    }
    return [name, values];
  }),
) as { readonly [N in Narrow]: number[] };

/** The value above finite[p]; above the greatest, where the same spacing would continue. */
function above(name: Narrow, p: number): number {
  const values = finite[name];
  const last = values.length - 1;
  return p < last ? values[p + 1]! : 2 * values[last]! - values[last - 1]!;
}

/** Nothing here rounds: a midpoint of neighbours needs one bit more than they have, far fewer than a double's 53. */
function nearestPattern(name: Narrow, value: number): number {
  const { nanPattern, overflow } = specs[name];
  if (Number.isNaN(value)) return nanPattern;
  const sign = Object.is(value, -0) || value < 0 ? 2 ** (bitsOf(name) - 1) : 0;
  const values = finite[name];
  const magnitude = Math.abs(value);
  let low = 0;
  let high = values.length;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (values[middle]! <= magnitude) low = middle;
    else high = middle;
  }
  const midpoint = (values[low]! + above(name, low)) / 2;
  const up = magnitude > midpoint || (magnitude === midpoint && low % 2 === 1);
  const pattern = up ? low + 1 : low;
  return sign + (pattern < values.length ? pattern : overflow);
}

const scalar = new DataView(new ArrayBuffer(8));

/** f64 -> f32 in exact integers: units of the f32 spacing, remainder against half of it. */
function nearestF32(value: number): bigint {
  if (Number.isNaN(value)) return 0x7fffffffn;
  scalar.setFloat64(0, value);
  const bits = scalar.getBigUint64(0);
  const sign = (bits >> 63n) << 31n;
  if (!Number.isFinite(value)) return sign | 0x7f800000n;
  const field = Number((bits >> 52n) & 0x7ffn);
  const fraction = bits & 0xfffffffffffffn;
  const significand = field === 0 ? fraction : fraction | (1n << 52n);
  const scale = Math.max(field, 1) - 1075; // value = significand * 2^scale
  const spacing = Math.max(scale + 52 - 23, -149); // both exponents of two
  const shift = BigInt(spacing - scale); // at least 29
  const half = 1n << (shift - 1n);
  let units = significand >> shift;
  const rest = significand - (units << shift);
  if (rest > half || (rest === half && units % 2n === 1n)) units += 1n;
  const magnitude = units + (BigInt(spacing + 149) << 23n);
  return sign | (magnitude > 0x7f800000n ? 0x7f800000n : magnitude);
}

function expectedBits(to: Target, value: number): bigint {
  if (to === 'f32') return nearestF32(value);
  if (to !== 'f64') return BigInt(nearestPattern(to, value));
  if (Number.isNaN(value)) return 0x7fffffffffffffffn;
  scalar.setFloat64(0, value);
  return scalar.getBigUint64(0);
}

// ---- Comparing ----

function patternAt(bytes: Uint8Array, size: number, index: number): bigint {
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  if (size === 8) return view.getBigUint64(index * 8, true);
  if (size === 4) return BigInt(view.getUint32(index * 4, true));
  return BigInt(size === 2 ? view.getUint16(index * 2, true) : view.getUint8(index));
}

function convert(from: FloatDType, source: Uint8Array, to: Target): (index: number) => bigint {
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
function differences(
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

const bytesOf = (array: Float32Array | Float64Array | Uint32Array | BigUint64Array): Uint8Array =>
  new Uint8Array(array.buffer, array.byteOffset, array.byteLength);

/** Every value of the type, every midpoint, both signs. */
function turningPoints(name: Narrow): number[] {
  const points: number[] = [];
  for (const [p, value] of finite[name].entries()) {
    const middle = (value + above(name, p)) / 2;
    points.push(value, -value, middle, -middle);
  }
  const end = above(name, finite[name].length - 1);
  return [...points, end, -end];
}

const specialF32 = [
  0, 0x80000000, 1, 0x80000001, 0x7fffff, 0x807fffff, 0x800000, 0x80800000, 0x7f7fffff, 0xff7fffff,
  0x7f800000, 0xff800000, 0x7f800001, 0xff800001, 0x7fbfffff, 0x7fc00000, 0xffc00000, 0x7fc12345, 0xffffffff,
  0x7f810000,
];
const specialF64 = [
  0n,
  1n << 63n,
  1n,
  (1n << 63n) | 1n,
  0x000fffffffffffffn,
  0x0010000000000000n,
  0x7fefffffffffffffn,
  0xffefffffffffffffn,
  0x7ff0000000000000n,
  0xfff0000000000000n,
  0x7ff0000000000001n,
  0xfff0000000000001n,
  0x7ff0000100000000n,
  0x7ff8000000000000n,
  0xfff8000000000000n,
  0x7ff8dead0000beefn,
  0xffffffffffffffffn,
  0x47efffffe0000000n, // the greatest f32
  0x47efffffefffffffn, // just below and at the f32 overflow midpoint
  0x47effffff0000000n,
  0x36a0000000000000n, // the least f32 subnormal, its half and their neighbours
  0x3690000000000000n,
  0x3690000000000001n,
  0x368fffffffffffffn,
];

describe('from 16-bit and 8-bit types', () => {
  for (const from of narrowDTypes) {
    const size = dtypeBytes(from);
    const all = size === 1 ? Uint8Array.from({ length: 256 }, (_, p) => p) : new Uint8Array(2 ** 17);
    if (size === 2) new Uint16Array(all.buffer).set(Uint16Array.from({ length: 65536 }, (_, p) => p));
    for (const to of [...floats, 'e2m1'] as const) {
      if (from === to) continue;
      it(`every pattern of ${from} to ${to}`, () => {
        expect(differences(from, all, (p) => valueOfPattern(from, p), to)).toEqual([]);
      });
    }
    it(`${from} to itself copies every pattern, NaN payloads too`, () => {
      const out = new Uint8Array(all.byteLength);
      castArray(from, all, from, out);
      expect(Buffer.compare(out, all)).toBe(0);
    });
  }
});

describe('from f4e2m1x2', () => {
  for (const to of floats) {
    it(`every byte to ${to}`, () => {
      const all = Uint8Array.from({ length: 256 }, (_, p) => p);
      const out = new Uint8Array(512 * dtypeBytes(to));
      unpackF4(all, to, out);
      for (let i = 0; i < 512; i++) {
        const nibble = i % 2 === 0 ? (i >> 1) % 16 : i >> 5;
        expect(patternAt(out, dtypeBytes(to), i)).toBe(expectedBits(to, valueOfPattern('e2m1', nibble)));
      }
      const back = new Uint8Array(256);
      packF4(to, out, back);
      expect(back).toEqual(all);
    });
  }
});

describe('from f32 and f64 to narrow types', () => {
  for (const name of narrowNames) {
    const points = turningPoints(name);
    it(`f32 to ${name}: values, midpoints and both neighbours of each`, () => {
      const bits = new Uint32Array(points.length * 3);
      for (const [i, center] of new Uint32Array(Float32Array.from(points).buffer).entries()) {
        bits.set([center, center + 1, center - 1], 3 * i);
      }
      const singles = new Float32Array(bits.buffer);
      expect(differences('f32', bytesOf(bits), (i) => singles[i]!, name)).toEqual([]);
      // Arrays take shortcuts for some types; the definition that other kernels follow must agree by itself.
      const { [name]: format } = narrowFormats;
      const wrong = bits.findIndex(
        (word, i) => narrowBits(word, format) !== nearestPattern(name, singles[i]!),
      );
      expect(wrong).toBe(-1);
    });
    it(`${name} to f32 by widenBits alone`, () => {
      const wrong: number[] = [];
      for (let p = 0; p < 2 ** bitsOf(name); p++) {
        const bits = BigInt(widenBits(p, narrowFormats[name]) >>> 0);
        if (bits !== nearestF32(valueOfPattern(name, p))) wrong.push(p);
      }
      expect(wrong).toEqual([]);
    });
    it(`f64 to ${name}: values, midpoints and their neighbours in f64 and in f32`, () => {
      const doubles = new Float64Array(points.length * 6);
      const bits = new BigUint64Array(doubles.buffer);
      const single = new Float32Array(1);
      const singleBits = new Uint32Array(single.buffer);
      for (const [i, center] of points.entries()) {
        doubles.fill(center, 6 * i, 6 * i + 6);
        bits[6 * i + 1]! += 1n;
        bits[6 * i + 2]! -= 1n;
        bits[6 * i + 3]! += 1n << 28n; // half an f32 step
        single[0] = center;
        singleBits[0]! += 1;
        doubles[6 * i + 4] = single[0];
        singleBits[0]! -= 2;
        doubles[6 * i + 5] = single[0];
      }
      expect(differences('f64', bytesOf(doubles), (i) => doubles[i]!, name)).toEqual([]);
    });
  }
});

describe('special values and random bits', () => {
  const singles = (bits: Uint32Array): Float32Array => new Float32Array(bits.buffer);
  const doubles = (bits: BigUint64Array): Float64Array => new Float64Array(bits.buffer);

  for (const to of [...floats, 'e2m1'] as const) {
    if (to !== 'f32') {
      it(`f32 to ${to}`, () => {
        const fixed = Uint32Array.from(specialF32);
        expect(differences('f32', bytesOf(fixed), (i) => singles(fixed)[i]!, to)).toEqual([]);
        fc.assert(
          fc.property(fc.uint32Array({ minLength: 200, maxLength: 200 }), (random) => {
            const bits = Uint32Array.from(random);
            const values = singles(bits);
            expect(differences('f32', bytesOf(bits), (i) => values[i]!, to)).toEqual([]);
          }),
        );
      });
    }
    if (to !== 'f64') {
      it(`f64 to ${to}`, () => {
        const fixed = BigUint64Array.from(specialF64);
        expect(differences('f64', bytesOf(fixed), (i) => doubles(fixed)[i]!, to)).toEqual([]);
        // Exponents near the target's own, where random 64-bit patterns hardly ever fall.
        const near = fc
          .tuple(fc.bigInt(0n, 1n), fc.integer({ min: -160, max: 130 }), fc.bigInt(0n, (1n << 52n) - 1n))
          .map(([sign, exponent, mantissa]) => (sign << 63n) | (BigInt(exponent + 1023) << 52n) | mantissa);
        const any = fc.oneof(near, fc.bigInt(0n, (1n << 64n) - 1n));
        fc.assert(
          fc.property(fc.array(any, { minLength: 60, maxLength: 60 }), (random) => {
            const bits = BigUint64Array.from(random);
            const values = doubles(bits);
            expect(differences('f64', bytesOf(bits), (i) => values[i]!, to)).toEqual([]);
          }),
        );
      });
    }
  }

  it('f64 to f32 at midpoints of f32 neighbours and beside them', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 0x7f7fffff }), fc.boolean(), (pattern, negative) => {
        const pair = singles(Uint32Array.of(pattern, pattern + 1));
        const upper = Number.isFinite(pair[1]!) ? pair[1]! : 2 ** 128;
        const values = new Float64Array(4).fill(((pair[0]! + upper) / 2) * (negative ? -1 : 1));
        const bits = new BigUint64Array(values.buffer);
        bits[1]! += 1n;
        bits[2]! -= 1n;
        expect(differences('f64', bytesOf(values), (i) => values[i]!, 'f32')).toEqual([]);
      }),
      { numRuns: 2000 },
    );
  });
});

describe('double rounding', () => {
  const bitsFrom64 = (value: number, to: Target): bigint => {
    const values = Float64Array.of(value, 0);
    return convert('f64', bytesOf(values), to)(0);
  };

  it('does not happen on the way from f64', () => {
    // Just above a tie, by less than f32 can tell: by way of f32 each would go down to even.
    const hair = 2 ** -40;
    expect(bitsFrom64(1 + 2 ** -8 + hair, 'bf16')).toBe(0x3f81n);
    expect(bitsFrom64(1 + 2 ** -11 + hair, 'f16')).toBe(0x3c01n);
    expect(bitsFrom64(1 + 2 ** -4 + hair, 'f8e4m3')).toBe(0x39n);
    expect(bitsFrom64(1 + 2 ** -3 + hair, 'f8e5m2')).toBe(0x3dn);
    expect(bitsFrom64(1 + 2 ** -2 + hair, 'e2m1')).toBe(3n);
  });

  it('overflows as IEEE 754 says, from the midpoint on', () => {
    expect(bitsFrom64(65519.99999999999, 'f16')).toBe(0x7bffn);
    expect(bitsFrom64(65520, 'f16')).toBe(0x7c00n);
    expect(bitsFrom64(-(2 ** 128 - 2 ** 119), 'bf16')).toBe(0xff80n);
    expect(bitsFrom64(1e300, 'f32')).toBe(0x7f800000n);
  });
});

describe('the rules as literal bits', () => {
  it.each([
    ['f8e4m3', 448, 0x7en],
    ['f8e4m3', 464, 0x7en],
    ['f8e4m3', 480, 0x7en],
    ['f8e4m3', -1e9, 0xfen],
    ['f8e4m3', Number.POSITIVE_INFINITY, 0x7en],
    ['f8e4m3', Number.NEGATIVE_INFINITY, 0xfen],
    ['f8e4m3', Number.NaN, 0x7fn],
    ['f8e4m3', 2 ** -9, 1n],
    ['f8e4m3', 2 ** -10, 0n],
    ['f8e4m3', -(2 ** -10), 0x80n],
    ['f8e5m2', 57344, 0x7bn],
    ['f8e5m2', 65536, 0x7bn],
    ['f8e5m2', Number.NEGATIVE_INFINITY, 0xfbn],
    ['f8e5m2', Number.NaN, 0x7fn],
    ['e2m1', Number.NaN, 7n],
    ['e2m1', -7, 0xfn],
    ['e2m1', 5, 6n],
    ['e2m1', 0.25, 0n],
    ['e2m1', -0.25, 8n],
    ['e2m1', 0.75, 2n],
    ['f16', Number.NEGATIVE_INFINITY, 0xfc00n],
    ['bf16', -0, 0x8000n],
    ['f32', Number.NaN, 0x7fffffffn],
  ] as const)('%s of %d', (to, value, bits) => {
    expect(convert('f64', bytesOf(Float64Array.of(value, 0)), to)(0)).toBe(bits);
  });

  it('an infinity of f8e5m2 is one in f32 and saturates in f8e4m3', () => {
    expect(convert('f8e5m2', Uint8Array.of(0x7c, 0xfc), 'f32')(1)).toBe(0xff800000n);
    expect(convert('f8e5m2', Uint8Array.of(0x7c, 0xfc), 'f8e4m3')(1)).toBe(0xfen);
  });
});

describe('f16 against @petamoriken/float16', () => {
  const view = new DataView(new ArrayBuffer(2));

  it('decodes every pattern to the same value', () => {
    const patterns = Uint16Array.from({ length: 65536 }, (_, p) => p);
    const values = new Float64Array(65536);
    castArray('f16', new Uint8Array(patterns.buffer), 'f64', bytesOf(values));
    const wrong = values.findIndex((value, p) => {
      view.setUint16(0, p);
      return !Object.is(value, getFloat16(view, 0));
    });
    expect(wrong).toBe(-1);
  });

  it('encodes values, midpoints and their neighbours to the same bits', () => {
    const values = Float64Array.from(
      turningPoints('f16').flatMap((v) => [v, v * (1 + 2 ** -50), v * (1 - 2 ** -50)]),
    );
    const got = convert('f64', bytesOf(values), 'f16');
    const wrong = values.findIndex((value, i) => {
      setFloat16(view, 0, value);
      return got(i) !== BigInt(view.getUint16(0));
    });
    expect(wrong).toBe(-1);
  });
});
