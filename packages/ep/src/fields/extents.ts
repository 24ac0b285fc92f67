// SPDX-License-Identifier: Apache-2.0
// From names of extents to numbers, and to text that shows both.

import type { EpSettings } from '../config/ep-settings.js';
import type { Extent } from './field-matrix.js';

/** What names stand for in one call; a name without a number takes what the first tensor has. */
export type Extents = Map<Extent, number>;

/** Those of a rank of a group; `tokens` is B. */
export function extentsOf(settings: EpSettings, rank: number, tokens?: number): Extents {
  const { ranks, maxTokensPerRank, topK, hidden, map } = settings;
  const extents: Extents = new Map<Extent, number>([
    ['K', topK],
    ['H', hidden],
    ['R', ranks],
    ['M', maxTokensPerRank],
    ['R*M', ranks * maxTokensPerRank],
    ['L', map.placement[rank]!.length],
    ['1', 1],
  ]);
  if (tokens !== undefined) extents.set('B', tokens);
  return extents;
}

/** As in `[B=4, K=2]`; a free extent shows its name only. */
export function shapeText(shape: readonly Extent[], extents: Extents): string {
  const parts = shape.map((name) => {
    const value = extents.get(name);
    return value === undefined ? name : name === '1' ? '1' : `${name}=${value}`;
  });
  return `[${parts.join(', ')}]`;
}
