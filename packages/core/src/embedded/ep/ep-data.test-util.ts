// SPDX-License-Identifier: Apache-2.0
// Random routings and rows for tests of expert parallelism, repeatable by their seed.

import type { Routing } from './ep-oracle.test-util.js';
import { rowBytesOf, type Shape } from './ep-world.test-util.js';

/** Repeatable numbers: a small mixer, so that failures can be repeated by their seed. */
export function random(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

/** Ragged tokens, some ids -1, some experts hot. */
export function randomRouting(shape: Shape, next: () => number, tokens?: number): Routing {
  const count = tokens ?? Math.floor(next() * (shape.maxTokens + 1));
  const hot = next() < 0.3;
  const none = next() < 0.1;
  const ids = new Int32Array(count * shape.topK).fill(-1);
  for (let token = 0; token < count && !none; token++) {
    const used = new Set<number>();
    for (let k = 0; k < shape.topK; k++) {
      if (next() < 0.2) continue;
      const id = Math.floor((hot ? next() ** 3 : next()) * shape.experts);
      if (used.has(id)) continue;
      used.add(id);
      ids[token * shape.topK + k] = id;
    }
  }
  const weights = Float32Array.from(ids, () => Math.round(next() * 16) / 16 + 0.0001);
  return { tokens: count, ids, weights };
}

/** Bytes of `count` elements that round in interesting ways. */
export function randomRows(shape: Shape, count: number, next: () => number): Uint8Array {
  const bytes = new Uint8Array(count * rowBytesOf(shape));
  const size = rowBytesOf(shape) / shape.hidden;
  const view = new DataView(bytes.buffer);
  for (let i = 0; i < count * shape.hidden; i++) {
    const value = (next() - 0.5) * 2 ** Math.floor(next() * 6);
    if (size === 4) view.setFloat32(i * 4, value, true);
    else if (shape.dtype === 'bf16') {
      view.setUint16(i * 2, new Uint32Array(Float32Array.of(value).buffer)[0]! >>> 16, true);
    } else view.setUint16(i * 2, (next() < 0.5 ? 0x8000 : 0) | (0x3000 + Math.floor(next() * 0x1400)), true);
  }
  return bytes;
}
