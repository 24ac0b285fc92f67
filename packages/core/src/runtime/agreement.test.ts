// SPDX-License-Identifier: Apache-2.0
// Differences between ranks are found and named.

import { describe, expect, it } from 'vitest';
import { compareFields } from './agreement.js';

describe('compareFields', () => {
  it('accepts equal fields, whatever their order', () => {
    expect(() =>
      compareFields('plan', [
        { a: 1, b: 'x' },
        { b: 'x', a: 1 },
      ]),
    ).not.toThrow();
  });

  it('names field, values and the ranks that differ from rank 0', () => {
    expect(() => compareFields('plan', [{ step: 1 }, { step: 1 }, { step: 2 }, { step: 3 }])).toThrow(
      expect.objectContaining({
        code: 'ERR_DISAGREEMENT',
        field: 'step',
        peer: 2,
        expected: 1,
        seen: 2,
        message: expect.stringContaining('ranks 2, 3 have 2'),
      }),
    );
  });

  it('finds a field that only one rank has', () => {
    expect(() => compareFields('plan', [{}, { extra: true }])).toThrow(
      expect.objectContaining({ code: 'ERR_DISAGREEMENT', field: 'extra', expected: undefined, seen: true }),
    );
  });
});
