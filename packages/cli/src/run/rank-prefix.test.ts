// SPDX-License-Identifier: Apache-2.0
// Colour is for terminals only.

import { describe, expect, it } from 'vitest';
import { styleFor } from '../output/style.js';
import { rankPrefix } from './rank-prefix.js';

describe('rankPrefix', () => {
  it('is plain where nobody looks on', () => {
    expect(rankPrefix(12, styleFor({}, {}))).toBe('[12] ');
    expect(rankPrefix(12, styleFor({ isTTY: true }, { NO_COLOR: '1' }))).toBe('[12] ');
  });

  it('has a colour on a terminal, another than its neighbour', () => {
    const [first, second] = [0, 1].map((rank) => rankPrefix(rank, styleFor({ isTTY: true }, {})));
    expect(first).toBe('\u001b[32m[0]\u001b[39m ');
    expect(second).toBe('\u001b[33m[1]\u001b[39m ');
  });
});
