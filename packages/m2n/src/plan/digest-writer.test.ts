// SPDX-License-Identifier: Apache-2.0
// What is hashed is what JSON.stringify would have written.

import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DigestWriter } from './digest-writer.js';
import { NameSet } from './name-set.js';

const sha = (text: string): string => createHash('sha256').update(text).digest('hex');

function digestOf(
  names: readonly string[],
  numbers: readonly number[],
): { digest: string; repeats: number[] } {
  const writer = new DigestWriter();
  const known = new NameSet(names.map((name) => ({ name })));
  writer.text('[');
  const hashes = new Int32Array(names.length);
  writer.strings(names, hashes);
  const repeats = names.map((_, i) => known.add(i, hashes[i]!));
  writer.text('],[');
  writer.integers(numbers);
  writer.text(']');
  return { digest: writer.digest(), repeats };
}

describe('DigestWriter and NameSet', () => {
  it('write any strings and integers as JSON does, and find the first equal name', () => {
    fc.assert(
      fc.property(
        fc.array(fc.string({ unit: 'binary', maxLength: 6 })),
        fc.array(fc.oneof(fc.maxSafeNat(), fc.nat(1000))),
        (names, numbers) => {
          const { digest, repeats } = digestOf(names, numbers);
          expect(digest).toBe(sha(`${JSON.stringify(names)},${JSON.stringify(numbers)}`));
          expect(repeats).toEqual(
            names.map((name, i) => (names.indexOf(name) < i ? names.indexOf(name) : -1)),
          );
        },
      ),
    );
  });

  it('write short, long and foreign texts in order', () => {
    fc.assert(
      fc.property(
        fc.array(fc.oneof(fc.string(), fc.string({ unit: 'grapheme' }), fc.constant('x'.repeat(5000)))),
        (texts) => {
          const writer = new DigestWriter();
          for (const text of texts) writer.text(text);
          expect(writer.digest()).toBe(sha(texts.join('')));
        },
      ),
    );
  });

  it('take strings and numbers beyond any buffer', () => {
    const names = [
      ...Array.from({ length: 5000 }, (_, i) => `layers.${i}.weight`),
      'x'.repeat(200_000),
      'é"\\\n',
    ];
    const numbers = [
      ...Array.from({ length: 30_000 }, (_, i) => i * 7),
      9,
      10,
      99,
      100,
      2 ** 30,
      2 ** 53 - 1,
      0,
    ];
    const { digest, repeats } = digestOf(names, numbers);
    expect(digest).toBe(sha(`${JSON.stringify(names)},${JSON.stringify(numbers)}`));
    expect(repeats.every((repeat) => repeat === -1)).toBe(true);
  });
});
