// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { NcclExtError } from '../errors/nccl-ext-error.js';
import { castArray, isCastable } from './cast-array.js';
import { type DType, dtypeBytes, dtypes, type FloatDType } from './dtype.js';
import { packF4, unpackF4 } from './f4.js';

const floats: readonly FloatDType[] = ['f64', 'f32', 'f16', 'bf16', 'f8e4m3', 'f8e5m2'];
const pairs = floats.flatMap((from) => floats.map((to) => [from, to] as const));

/** More than two tiles and a rest, every value finite in every type. */
const count = 2 * 2048 + 77;
const values = Float32Array.from({ length: count }, (_, i) => ((i * 37) % 401) / 8 - 25);

function elements(dtype: FloatDType): Uint8Array {
  const bytes = new Uint8Array(count * dtypeBytes(dtype));
  castArray('f32', new Uint8Array(values.buffer), dtype, bytes);
  return bytes;
}

function cast(from: FloatDType, source: Uint8Array, to: FloatDType): Uint8Array {
  const out = new Uint8Array((source.byteLength / dtypeBytes(from)) * dtypeBytes(to));
  castArray(from, source, to, out);
  return out;
}

function failure(action: () => void): NcclExtError {
  try {
    action();
  } catch (error) {
    if (NcclExtError.is(error)) return error;
    throw error;
  }
  throw new Error('nothing was thrown');
}

describe('castArray', () => {
  it.each(pairs)(
    '%s to %s: any byte offset, in shared memory too, and nothing around it is touched',
    (from, to) => {
      const source = elements(from);
      const wanted = cast(from, source, to);
      for (const [sourceOffset, destinationOffset] of [
        [1, 0],
        [0, 1],
        [3, 5],
      ] as const) {
        const shifted = new Uint8Array(new SharedArrayBuffer(source.byteLength + 8));
        shifted.set(source, sourceOffset);
        const room = new Uint8Array(new SharedArrayBuffer(wanted.byteLength + 16)).fill(0xa5);
        const end = destinationOffset + wanted.byteLength;
        castArray(
          from,
          shifted.subarray(sourceOffset, sourceOffset + source.byteLength),
          to,
          room.subarray(destinationOffset, end),
        );
        expect(Buffer.compare(room.slice(destinationOffset, end), wanted)).toBe(0);
        expect(room.slice(0, destinationOffset).every((byte) => byte === 0xa5)).toBe(true);
        expect(room.slice(end).every((byte) => byte === 0xa5)).toBe(true);
      }
    },
  );

  it.each(pairs)('%s to %s: overlapping arrays give what separate ones give', (from, to) => {
    const source = elements(from);
    const wanted = cast(from, source, to);
    for (const [sourceOffset, destinationOffset] of [
      [0, 0],
      [0, 7],
      [9, 0],
      [count, 3],
    ] as const) {
      const memory = new Uint8Array(source.byteLength + wanted.byteLength + count);
      const input = memory.subarray(sourceOffset, sourceOffset + source.byteLength);
      const output = memory.subarray(destinationOffset, destinationOffset + wanted.byteLength);
      input.set(source);
      castArray(from, input, to, output);
      expect(Buffer.compare(output, wanted)).toBe(0);
    }
  });

  it('leaves a source alone that it shares a buffer with but does not overlap', () => {
    const memory = new Uint8Array(6);
    memory.set([0x80, 0x3f], 4);
    castArray('bf16', memory.subarray(4), 'f32', memory.subarray(0, 4));
    expect([...memory]).toEqual([0, 0, 0x80, 0x3f, 0x80, 0x3f]);
  });

  it.each(dtypes)('%s to itself copies bytes', (dtype) => {
    const source = Uint8Array.from({ length: 64 }, (_, i) => 255 - i);
    const out = new Uint8Array(64);
    castArray(dtype, source, dtype, out);
    expect(out).toEqual(source);
  });

  it('takes empty arrays', () => {
    castArray('f64', new Uint8Array(0), 'bf16', new Uint8Array(0));
  });

  it('refuses arrays of different element counts', () => {
    const error = failure(() => castArray('f32', new Uint8Array(8), 'bf16', new Uint8Array(6)));
    expect(error).toMatchObject({ code: 'ERR_INVALID_ARGUMENT', field: 'destination', expected: 4, seen: 6 });
    expect(error.message).toContain('destination has 6 bytes, but the elements of source take 4');
    expect(failure(() => castArray('i32', new Uint8Array(8), 'i32', new Uint8Array(4))).code).toBe(
      'ERR_INVALID_ARGUMENT',
    );
  });

  it('refuses a cut element', () => {
    const error = failure(() => castArray('f32', new Uint8Array(7), 'bf16', new Uint8Array(4)));
    expect(error).toMatchObject({ code: 'ERR_INVALID_ARGUMENT', field: 'source', seen: 7 });
    expect(error.message).toContain('not a multiple of 4');
  });

  it('refuses other pairs, says which type is at fault and what to do', () => {
    const refuse = (from: DType, to: DType): NcclExtError =>
      failure(() => castArray(from, new Uint8Array(8), to, new Uint8Array(8)));
    expect(refuse('f32', 'i32')).toMatchObject({ code: 'ERR_CAST', field: 'to' });
    expect(refuse('f32', 'i32').message).toContain('i32 is no float type');
    expect(refuse('u8', 'f32')).toMatchObject({ code: 'ERR_CAST', field: 'from' });
    expect(refuse('i32', 'u32').code).toBe('ERR_CAST');
    expect(refuse('f4e2m1x2', 'f32')).toMatchObject({ code: 'ERR_CAST', field: 'from' });
    expect(refuse('f32', 'f4e2m1x2').message).toContain('packF4');
  });
});

describe('isCastable', () => {
  it('is true of identical dtypes and pairs of single floats only', () => {
    for (const from of dtypes) {
      for (const to of dtypes) {
        const both = [from, to].every((dtype) => (floats as readonly DType[]).includes(dtype));
        expect(isCastable(from, to)).toBe(from === to || both);
      }
    }
  });
});

describe('packF4 and unpackF4', () => {
  it('go through tiles at any offset, also in place', () => {
    const bytes = Uint8Array.from({ length: 3000 }, (_, i) => (i * 7) % 256);
    const memory = new Uint8Array(3000 * 4 + 1);
    const wide = memory.subarray(1);
    wide.set(bytes);
    unpackF4(wide.subarray(0, 3000), 'bf16', wide);
    expect(wide[1]! * 256 + wide[0]!).toBe(0);
    packF4('bf16', wide, wide.subarray(500, 3500));
    expect(wide.slice(500, 3500)).toEqual(bytes);
  });

  it('refuse an odd number of values and lengths that do not match', () => {
    const odd = failure(() => packF4('f32', new Uint8Array(12), new Uint8Array(1)));
    expect(odd).toMatchObject({ code: 'ERR_INVALID_ARGUMENT', field: 'source', seen: 3 });
    const long = failure(() => packF4('f32', new Uint8Array(16), new Uint8Array(3)));
    expect(long).toMatchObject({ code: 'ERR_INVALID_ARGUMENT', field: 'destination', expected: 2, seen: 3 });
    const short = failure(() => unpackF4(new Uint8Array(2), 'f32', new Uint8Array(12)));
    expect(short).toMatchObject({
      code: 'ERR_INVALID_ARGUMENT',
      field: 'destination',
      expected: 16,
      seen: 12,
    });
    expect(failure(() => packF4('f32', new Uint8Array(5), new Uint8Array(1))).field).toBe('source');
  });
});
