// SPDX-License-Identifier: Apache-2.0
// The kernels against naive loops, the casts against castArray on every 8- and 16-bit pattern, and the committed assembly.

import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { castArray } from '../../dtype/cast-array.js';
import { dtypeBytes, dtypeCode, type FloatDType } from '../../dtype/dtype.js';
import { kernelsOf } from '../worker/kernels.js';
import { webAssembly } from './web-assembly.js';

const memory = new webAssembly.Memory({ initial: 64, maximum: 64, shared: true });
const kernels = kernelsOf(memory);
const bytes = new Uint8Array(memory.buffer);
const floats: readonly FloatDType[] = ['f64', 'f32', 'f16', 'bf16', 'f8e4m3', 'f8e5m2'];
const pairs = floats.flatMap((from) => floats.filter((to) => to !== from).map((to) => [from, to] as const));
const scratch = 0;
const source = 65_536;
const destination = 2_097_152;

/** Casts `input` with the kernel, `inner` elements per run. */
function cast(from: FloatDType, to: FloatDType, input: Uint8Array, inner: number): Uint8Array {
  const [fromSize, toSize] = [dtypeBytes(from), dtypeBytes(to)];
  const runs = input.length / fromSize / inner;
  bytes.set(input, source);
  bytes.fill(0xa5, destination, destination + runs * inner * toSize + 64);
  // biome-ignore format: in the order of cast.wat
  kernels.castRuns(dtypeCode(from), dtypeCode(to), toSize, fromSize, scratch, destination, source, inner, 1, runs,
    0, 0, inner * toSize, 0, 0, inner * fromSize, 0, 0, 0, runs);
  const end = destination + runs * inner * toSize;
  expect(bytes.subarray(end, end + 64).every((byte) => byte === 0xa5)).toBe(true);
  return bytes.slice(destination, end);
}

function expected(from: FloatDType, to: FloatDType, input: Uint8Array): Uint8Array {
  const output = new Uint8Array((input.length / dtypeBytes(from)) * dtypeBytes(to));
  castArray(from, input, to, output);
  return output;
}

/** Every pattern of a narrow type; for f32 and f64 edges of all exponents, their neighbours, and random bits. */
const known = new Map<FloatDType, Uint8Array>();

function patterns(from: FloatDType): Uint8Array {
  const all = known.get(from) ?? makePatterns(from);
  known.set(from, all);
  return all;
}

function makePatterns(from: FloatDType): Uint8Array {
  const size = dtypeBytes(from);
  if (size === 1) return Uint8Array.from({ length: 256 }, (_, i) => i);
  if (size === 2) return new Uint8Array(Uint16Array.from({ length: 65_536 }, (_, i) => i).buffer);
  const words: bigint[] = [];
  const [exponents, mantissa] = size === 4 ? [256, 23n] : [2048, 52n];
  for (let exponent = 0; exponent < exponents; exponent++) {
    const base = BigInt(exponent) << mantissa;
    for (const bit of [0n, 1n, 2n, 3n, 10n, 13n, 16n, 20n, 21n, 22n, 29n, 42n, 45n, 49n, 50n, 51n]) {
      if (bit >= mantissa) continue;
      for (const low of [-1n, 0n, 1n]) words.push(base + (1n << bit) + low, base + (3n << bit) + low);
    }
    words.push(base, base + 1n, base + (1n << mantissa) - 1n);
  }
  let state = 1n;
  for (let i = 0; i < 20_000; i++) {
    state = (state * 6364136223846793005n + 1442695040888963407n) & 0xffffffffffffffffn;
    words.push(size === 4 ? state >> 32n : state);
  }
  const signed = words.flatMap((word) => [word, word | (1n << BigInt(size * 8 - 1))]);
  return size === 4
    ? new Uint8Array(Uint32Array.from(signed, (word) => Number(word & 0xffffffffn)).buffer)
    : new Uint8Array(BigUint64Array.from(signed).buffer);
}

describe('casts', () => {
  it.each(pairs)('%s to %s equals castArray bit for bit', (from, to) => {
    const all = patterns(from);
    const size = dtypeBytes(from);
    const part = 32_768 * size;
    for (let start = 0; start < all.length; start += part) {
      const input = all.subarray(start, Math.min(all.length, start + part));
      expect(Buffer.compare(cast(from, to, input, input.length / size), expected(from, to, input))).toBe(0);
    }
  });

  it.each([1, 2, 3, 4, 5, 7])('runs of %i elements write nothing beside them', (inner) => {
    for (const [from, to] of pairs) {
      const input = patterns(from).slice(0, inner * 36 * dtypeBytes(from));
      expect(cast(from, to, input, inner)).toEqual(expected(from, to, input));
    }
  });
});

describe('copies', () => {
  it.each([1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16, 17, 31, 63, 64, 65, 127, 200, 2047, 2048, 2100])(
    'runs of %i bytes at odd offsets and strides, from the middle of the loops on',
    (inner) => {
      const [c0, c1, c2] = [2, 3, 5];
      const s2 = inner + 3;
      const s1 = s2 * c2 + 1;
      const s0 = s1 * c1;
      const d2 = inner + 1;
      const d1 = d2 * c2 + 2;
      const d0 = d1 * c1;
      for (let i = 0; i < s0 * c0; i++) bytes[source + i] = (i * 31 + (i >> 8)) & 255;
      bytes.fill(0xee, destination, destination + d0 * c0 + 64);
      const first = 7;
      // biome-ignore format: in the order of copy.wat
      kernels.copyRuns(destination + 1, source + 1, inner, c1, c2, d0, d1, d2, s0, s1, s2, 0, 1, 2, c0 * c1 * c2 - first);
      const want = new Uint8Array(d0 * c0 + 64).fill(0xee);
      for (let run = first; run < c0 * c1 * c2; run++) {
        const [i, j, k] = [Math.floor(run / (c1 * c2)), Math.floor(run / c2) % c1, run % c2];
        const from = source + 1 + i * s0 + j * s1 + k * s2;
        want.set(bytes.subarray(from, from + inner), 1 + i * d0 + j * d1 + k * d2);
      }
      expect(bytes.slice(destination, destination + want.length)).toEqual(want);
    },
  );
});

describe('hashes', () => {
  const mask = 0xffffffffffffffffn;
  function mix(word: bigint): bigint {
    let x = word & mask;
    x = ((x ^ (x >> 30n)) * 0xbf58476d1ce4e5b9n) & mask;
    x = ((x ^ (x >> 27n)) * 0x94d049bb133111ebn) & mask;
    return x ^ (x >> 31n);
  }

  it.each([1, 7, 8, 9, 15, 16, 64, 100])('runs of %i bytes sum to the definition', (inner) => {
    const stride = inner + 5;
    for (let i = 0; i < stride * 6; i++) bytes[source + i] = (i * 77 + 13) & 255;
    let [sum, number] = [0n, 41n];
    for (let run = 0; run < 6; run++) {
      for (let at = 0; at < inner; at += 8) {
        let word = 0n;
        for (let k = Math.min(8, inner - at) - 1; k >= 0; k--)
          word = (word << 8n) | BigInt(bytes[source + run * stride + at + k]!);
        sum = (sum + mix(word + (number + 1n) * 0x9e3779b97f4a7c15n)) & mask;
        number++;
      }
    }
    kernels.hashRuns(source, inner, 2, 3, 3 * stride, 3 * stride, stride, 0, 0, 0, 6, 41, scratch);
    expect(new BigUint64Array(memory.buffer)[0]).toBe(sum);
  });
});

it('is assembled from the .wat files as committed', async () => {
  const script: string = '../../../../../scripts/generate-wasm.mjs';
  const { assembleWasm, wasmOutput } = await import(script);
  expect(readFileSync(wasmOutput, 'utf8')).toBe(await assembleWasm());
});
