// SPDX-License-Identifier: Apache-2.0
// f16 agrees bit for bit with @petamoriken/float16, which knows nothing of this code.

import { getFloat16, setFloat16 } from '@petamoriken/float16';
import { describe, expect, it } from 'vitest';
import { castArray } from './cast-array.js';
import { bytesOf, convert, turningPoints } from './float-differences.test-util.js';

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
