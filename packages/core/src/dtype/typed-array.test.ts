// SPDX-License-Identifier: Apache-2.0
import { describe, expect, expectTypeOf, it } from 'vitest';
import { dtypeBytes, dtypes } from './dtype.js';
import { type TypedArrayOf, typedArrayFor } from './typed-array.js';

describe('typedArrayFor', () => {
  it.each(dtypes)('%s: elements of the right size, over shared memory too', (dtype) => {
    const Elements = typedArrayFor(dtype);
    expect(Elements.BYTES_PER_ELEMENT).toBe(dtypeBytes(dtype));
    const view = new Elements(new SharedArrayBuffer(32), 8, 2);
    expect(view.byteOffset).toBe(8);
    expect(view.byteLength).toBe(2 * dtypeBytes(dtype));
  });

  it('sees floats without an array of their own as bits', () => {
    expect(typedArrayFor('f16')).toBe(Uint16Array);
    expect(typedArrayFor('bf16')).toBe(Uint16Array);
    expect(typedArrayFor('f8e4m3')).toBe(Uint8Array);
    expect(typedArrayFor('f4e2m1x2')).toBe(Uint8Array);
    expect(typedArrayFor('bool')).toBe(Uint8Array);
  });

  it('has types to match', () => {
    expectTypeOf(new (typedArrayFor('bf16'))(1)).toEqualTypeOf<Uint16Array>();
    expectTypeOf<TypedArrayOf<'i64'>>().toEqualTypeOf<BigInt64Array>();
    expectTypeOf<TypedArrayOf<'u64' | 'f32'>>().toEqualTypeOf<BigUint64Array | Float32Array>();
  });
});
