// SPDX-License-Identifier: Apache-2.0
// Where rounding turns: every value of a narrow type, every midpoint and the neighbours of each.

import { describe, expect, it } from 'vitest';
import { bytesOf, differences, turningPoints } from './float-differences.test-util.js';
import { narrowBits, narrowFormats, widenBits } from './float-format.js';
import { bitsOf, narrowNames, nearestF32, nearestPattern, valueOfPattern } from './float-oracle.test-util.js';

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
