// SPDX-License-Identifier: Apache-2.0
import { dtypeBytes, type ErrorCode, NcclExtError } from '@nccl-ext/core';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { dtypeOfSafetensors, safetensorsNames } from './dtype-names.js';
import { findDuplicateKey } from './find-duplicate-key.js';
import { parseHeader } from './header.js';

const encode = (text: string): Uint8Array => new TextEncoder().encode(text);
const parse = (header: unknown, dataBytes: number) =>
  parseHeader(
    encode(typeof header === 'string' ? header : JSON.stringify(header)),
    dataBytes,
    'model.safetensors',
  );

function refusal(header: unknown, dataBytes: number): string {
  try {
    parse(header, dataBytes);
  } catch (error) {
    expect(NcclExtError.is(error, 'ERR_CHECKPOINT' satisfies ErrorCode)).toBe(true);
    return (error as NcclExtError).message;
  }
  throw new Error('was accepted');
}

const f32 = (shape: number[], begin: number, end: number) => ({
  dtype: 'F32',
  shape,
  data_offsets: [begin, end],
});

describe('parseHeader', () => {
  it('gives tensors in the order of their data, and the metadata', () => {
    const header = parse({ b: f32([2, 3], 8, 32), __metadata__: { format: 'pt' }, a: f32([2], 0, 8) }, 32);
    expect(header).toEqual({
      metadata: { format: 'pt' },
      tensors: [
        { name: 'a', dtype: 'f32', shape: [2], begin: 0, end: 8 },
        { name: 'b', dtype: 'f32', shape: [2, 3], begin: 8, end: 32 },
      ],
    });
  });

  it('knows scalars, empty tensors, an empty file, padding and names that JavaScript treats specially', () => {
    expect(parse('{}   ', 0).tensors).toEqual([]);
    const text =
      '{"s":{"dtype":"BOOL","shape":[],"data_offsets":[0,1]},"e":{"dtype":"F64","shape":[0,3],"data_offsets":[1,1]},"__proto__":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}}';
    expect(parse(text, 3).tensors.map(({ name, shape }) => [name, shape])).toEqual([
      ['s', []],
      ['e', [0, 3]],
      ['__proto__', [2]],
    ]);
  });

  it('maps every dtype there and back, and checks its size', () => {
    for (const [dtype, name] of Object.entries(safetensorsNames)) {
      const bytes = dtypeBytes(dtype as keyof typeof safetensorsNames);
      const tensor = { dtype: name, shape: [name === 'F4' ? 6 : 3], data_offsets: [0, 3 * bytes] };
      expect(parse({ x: tensor }, 3 * bytes).tensors[0]).toMatchObject({ dtype, shape: [3] });
      expect(dtypeOfSafetensors(name)).toBe(dtype);
      expect(refusal({ x: { ...tensor, data_offsets: [0, 3 * bytes + 1] } }, 3 * bytes + 1)).toContain('"x"');
    }
  });

  const cases: [title: string, header: unknown, dataBytes: number, words: string[]][] = [
    ['what is not an object', '[1]', 0, ["start with '{'"]],
    ['what is not JSON', '{"a": ', 0, ['not JSON']],
    ['a byte order mark', '\uFEFF{}', 0, ["start with '{'"]],
    [
      'offsets out of range',
      { a: f32([2], 0, 8), b: f32([2], 8, 16) },
      12,
      ['"b"', '[8, 16]', '12 data bytes'],
    ],
    [
      'overlapping offsets',
      { a: f32([2], 0, 8), b: f32([2], 4, 12) },
      12,
      ['"b"', '[4, 12]', 'overlap', '"a"'],
    ],
    ['the same range twice', { a: f32([2], 0, 8), b: f32([2], 0, 8) }, 8, ['"b"', 'overlap', '"a"']],
    ['a hole', { a: f32([2], 0, 8), b: f32([1], 12, 16) }, 16, ['"b"', 'hole', '[8, 12)']],
    ['a hole in front', { a: f32([2], 4, 12) }, 12, ['"a"', 'hole', '[0, 4)']],
    ['bytes behind the last tensor', { a: f32([2], 0, 8) }, 9, ['[8, 9)']],
    ['end before begin', { a: f32([2], 8, 0) }, 8, ['"a"', '[8, 0]', 'before']],
    [
      'a size that the shape does not need',
      { a: f32([3], 0, 8) },
      8,
      ['"a"', '[3]', 'F32', '12 bytes', 'hold 8'],
    ],
    ['a shape whose size overflows', { a: f32([2 ** 40, 2 ** 40], 0, 8) }, 8, ['"a"', 'hold 8']],
    ['an unknown dtype', { a: { ...f32([2], 0, 8), dtype: 'F32X' } }, 8, ['"a"', '"F32X"', 'BF16']],
    ['a negative extent', { a: f32([-2, -1], 0, 8) }, 8, ['"a"', 'shape[0]']],
    ['a fractional extent', { a: f32([0.5, 4], 0, 8) }, 8, ['"a"', 'shape[0]']],
    ['a fractional offset', { a: f32([2], 0.5, 8.5) }, 9, ['"a"', 'data_offsets[0]']],
    [
      'three offsets',
      { a: { dtype: 'F32', shape: [2], data_offsets: [0, 8, 8] } },
      8,
      ['"a"', 'data_offsets'],
    ],
    ['a missing shape', { a: { dtype: 'F32', data_offsets: [0, 8] } }, 8, ['"a"', 'shape']],
    ['an entry that is no object', { a: 3 }, 0, ['"a"']],
    ['metadata that are no strings', { __metadata__: { step: 3 } }, 0, ['__metadata__', 'step']],
    [
      'an odd F4 dimension',
      { a: { dtype: 'F4', shape: [3], data_offsets: [0, 2] } },
      2,
      ['"a"', 'even', '3'],
    ],
    [
      'a name twice',
      '{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"\\u0061":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}',
      1,
      ['"a"', 'twice'],
    ],
    [
      'a field twice',
      '{"a":{"dtype":"U8","shape":[1],"shape":[1],"data_offsets":[0,1]}}',
      1,
      ['"a"', '"shape"', 'twice'],
    ],
  ];
  it.each(cases)('refuses %s', (_title, header, dataBytes, words) => {
    const message = refusal(header, dataBytes);
    for (const word of ['model.safetensors', ...words]) expect(message).toContain(word);
  });

  it('refuses invalid UTF-8', () => {
    const bytes = encode('{"a":3}');
    bytes[2] = 0xff;
    expect(() => parseHeader(bytes, 0, 'f')).toThrow(/not JSON/);
  });
});

describe('findDuplicateKey', () => {
  it('finds none in what JSON.stringify wrote, which has every key once', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 4 }), (value) => {
        expect(findDuplicateKey(JSON.stringify(value, null, 1))).toBeUndefined();
      }),
    );
  });

  it('finds a duplicate wherever it is put', () => {
    fc.assert(
      fc.property(
        fc.array(fc.string(), { maxLength: 4 }),
        fc.string(),
        fc.jsonValue(),
        (outer, key, value) => {
          const v = JSON.stringify(value);
          const k = JSON.stringify(key);
          let text = `{${k}:${v} , ${k} : ${v}}`;
          for (const name of outer) text = `{${JSON.stringify(`${name}!`)}:[0,"}",${text}]}`;
          expect(findDuplicateKey(text)).toEqual([...outer.map((name) => `${name}!`).reverse(), key]);
        },
      ),
    );
  });
});
