// SPDX-License-Identifier: Apache-2.0
// Views of device memory: right bytes at any offset, and typed errors for what cannot be viewed.

import { describe, expect, it } from 'vitest';
import { viewOf } from './host-view.js';

const memory = { buffer: new SharedArrayBuffer(64), byteOffset: 16 };

describe('viewOf', () => {
  it('starts at the offset within the buffer and reaches its end by default', () => {
    const view = viewOf(memory, 32, 'u32', 8);
    expect([view.byteOffset, view.length]).toEqual([24, 6]);
  });

  it('refuses misaligned, negative and outside ranges', () => {
    expect(() => viewOf(memory, 32, 'f32', 2)).toThrow(
      expect.objectContaining({ code: 'ERR_INVALID_ARGUMENT', field: 'byteOffset' }),
    );
    expect(() => viewOf(memory, 32, 'u8', -1)).toThrow(
      expect.objectContaining({ code: 'ERR_INVALID_ARGUMENT' }),
    );
    expect(() => viewOf(memory, 32, 'f32', 16, 5)).toThrow(
      expect.objectContaining({ code: 'ERR_OUT_OF_BOUNDS' }),
    );
    expect(() => viewOf(memory, 32, 'f32', 40)).toThrow(
      expect.objectContaining({ code: 'ERR_OUT_OF_BOUNDS' }),
    );
  });

  it('says how to view more elements than a typed array holds', () => {
    expect(() => viewOf(memory, 2 ** 33, 'u8', 0)).toThrow(
      expect.objectContaining({ code: 'ERR_VIEW_TOO_LARGE', help: expect.stringContaining('in parts') }),
    );
  });
});
