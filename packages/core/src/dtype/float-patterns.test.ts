// SPDX-License-Identifier: Apache-2.0
// Every pattern of the 16-bit, 8-bit and 4-bit types becomes what the oracle makes of its value.

import { describe, expect, it } from 'vitest';
import { castArray } from './cast-array.js';
import { dtypeBytes } from './dtype.js';
import { packF4, unpackF4 } from './f4.js';
import { differences, patternAt } from './float-differences.test-util.js';
import { expectedBits, floats, narrowDTypes, valueOfPattern } from './float-oracle.test-util.js';

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
