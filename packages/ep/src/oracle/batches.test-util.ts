// SPDX-License-Identifier: Apache-2.0
// What ranks route in a test, as plain numbers.

import { decodeFloat, encodeFloat } from '@nccl-ext/core';
import type { EpDType } from '../config/ep-config.js';

/** The batch of one source rank. */
export interface Batch {
  /** [B][K]. */
  readonly ids: readonly (readonly number[])[];
  /** [B][K], exact in f32. */
  readonly weights: readonly (readonly number[])[];
  /** [B][H], exact in the dtype. */
  readonly tokens: readonly (readonly number[])[];
}

/** A small generator of numbers that repeat with the seed (Mulberry32). */
export function numbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

export function rounded(dtype: EpDType, value: number): number {
  return decodeFloat(dtype, encodeFloat(dtype, value));
}

/** One batch per entry of `sizes`, with ids of `experts` experts, some of them -1. */
export function randomBatches(
  sizes: readonly number[],
  { experts, topK, hidden, dtype }: { experts: number; topK: number; hidden: number; dtype: EpDType },
  seed = 1,
): Batch[] {
  const next = numbers(seed);
  return sizes.map((size) => ({
    ids: Array.from({ length: size }, () => {
      const pool = Array.from({ length: experts }, (_, e) => e);
      return Array.from({ length: topK }, () => {
        const id = pool.splice(Math.floor(next() * pool.length), 1)[0]!;
        return next() < 0.15 ? -1 : id;
      });
    }),
    weights: Array.from({ length: size }, () => Array.from({ length: topK }, () => Math.fround(next()))),
    tokens: Array.from({ length: size }, () =>
      Array.from({ length: hidden }, () => rounded(dtype, 4 * next() - 2)),
    ),
  }));
}
