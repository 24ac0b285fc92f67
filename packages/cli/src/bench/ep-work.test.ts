// SPDX-License-Identifier: Apache-2.0
// Bytes of dispatch and combine by both counts, against a routing worked out by hand.

import { describe, expect, it } from 'vitest';
import { copyBytesOf, type EpWork, epWork, passBytes } from './ep-work.js';

/** Experts 0, 1 on rank 0 and 2, 3 on rank 1; rows of 16 bytes. */
const work: Omit<EpWork, 'layout'> = {
  ranks: 2,
  tokens: 2,
  topK: 2,
  experts: 4,
  hidden: 8,
  dtype: 'bf16',
  topkIdx: [Int32Array.of(0, 1, 0, 2), Int32Array.of(2, 3, -1, -1)],
};

describe('passBytes', () => {
  it('counts each pair of token and rank once, in one direction', () => {
    // Pairs: (0,0) to rank 0; (0,1) to both; (1,0) to rank 1. Selections: 6.
    for (const layout of ['flat', 'rank-major'] as const) {
      expect(passBytes({ ...work, layout })).toEqual({
        dispatch: { formulaBytes: 4 * 16, readBytes: 3 * 16, writtenBytes: 4 * 16 },
        combine: { formulaBytes: 4 * 16, readBytes: 4 * 16, writtenBytes: 4 * 16 },
      });
    }
  });

  it('counts selections where each has a row', () => {
    const expertMajor = passBytes({ ...work, layout: 'expert-major' });
    expect(expertMajor.dispatch).toEqual({ formulaBytes: 4 * 16, readBytes: 3 * 16, writtenBytes: 6 * 16 });
    expect(expertMajor.combine).toEqual({ formulaBytes: 6 * 16, readBytes: 6 * 16, writtenBytes: 4 * 16 });
    expect(copyBytesOf(expertMajor.combine)).toBe(5 * 16);
    expect(passBytes({ ...work, layout: 'packed' }).combine.formulaBytes).toBe(4 * 16);
  });

  it('agrees with the expected number of destinations of a uniform routing', () => {
    // 8 of 256 experts reach 3.61 of 4 ranks on average.
    const sizes = { ranks: 4, tokens: 256, topK: 8, experts: 256, hidden: 64, dtype: 'bf16' } as const;
    const { dispatch } = passBytes(epWork({ ...sizes, layout: 'flat' }));
    expect(dispatch.formulaBytes / (4 * 256 * 128)).toBeCloseTo(3.61, 1);
  });
});
