// SPDX-License-Identifier: Apache-2.0
// How a dimension and its heads are shared out when they divide, and when they do not.

import { describe, expect, it } from 'vitest';
import { chunk, shareHeads } from './cut-dimension.js';

describe('shares', () => {
  it('chunk is torch.chunk, in units', () => {
    expect(chunk(10, 4)).toEqual([
      [0, 3],
      [3, 6],
      [6, 9],
      [9, 10],
    ]);
    expect(chunk(4, 3)).toEqual([
      [0, 2],
      [2, 4],
      [4, 4],
    ]);
    expect(chunk(576, 4, 128)).toEqual([
      [0, 256],
      [256, 512],
      [512, 576],
      [576, 576],
    ]);
  });

  it('8 key and value heads on 16 ranks: two ranks have each, and half of its query heads', () => {
    const { query, keyValue } = shareHeads(64, 8, 16);
    expect(keyValue.slice(0, 4)).toEqual([
      [0, 1],
      [0, 1],
      [1, 2],
      [1, 2],
    ]);
    expect(query.slice(0, 3)).toEqual([
      [0, 4],
      [4, 8],
      [8, 12],
    ]);
  });

  it('what does not divide is uneven, and no head is left out', () => {
    expect(shareHeads(6, 3, 2)).toEqual({
      keyValue: [
        [0, 2],
        [2, 3],
      ],
      query: [
        [0, 4],
        [4, 6],
      ],
    });
    expect(shareHeads(6, 2, 3)).toEqual({
      keyValue: [
        [0, 1],
        [0, 1],
        [1, 2],
      ],
      query: [
        [0, 2],
        [2, 3],
        [3, 6],
      ],
    });
  });
});
