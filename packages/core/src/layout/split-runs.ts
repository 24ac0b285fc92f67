// SPDX-License-Identifier: Apache-2.0
// Turns a split of an extent among n coordinates into the pieces that each of them holds.

import { dimRuns, type RunPiece } from './fold-runs.js';
import type { Split } from './placement.js';
import type { DimRuns } from './runs.js';

/** What coordinate `index` of `n` holds of [0, extent). The split was checked against both. */
export function splitRuns(split: Split, n: number, extent: number, index: number): DimRuns {
  return dimRuns(pieces(split, n, extent, index));
}

/** How much that is, without making the runs. */
export function splitExtent(split: Split, n: number, extent: number, index: number): number {
  return pieces(split, n, extent, index).reduce((sum, { length, count = 1 }) => sum + length * count, 0);
}

function pieces(split: Split, n: number, extent: number, index: number): RunPiece[] {
  switch (split.kind) {
    case 'even':
    case 'chunk':
      return [chunk(extent, n, index)];
    case 'sizes': {
      const start = split.sizes.slice(0, index).reduce((sum, size) => sum + size, 0);
      return [{ start, length: split.sizes[index]! }];
    }
    case 'ranges': {
      const [start, end] = split.ranges[index]!;
      return [{ start, length: end - start }];
    }
    case 'strided': {
      const segment = extent / split.groups;
      return [{ ...chunk(segment, n, index), stride: segment, count: split.groups }];
    }
    case 'interleaved': {
      let segmentStart = 0;
      return split.segments.map((segment) => {
        const { start, length } = chunk(segment, n, index);
        segmentStart += segment;
        return { start: segmentStart - segment + start, length };
      });
    }
    case 'blockCyclic':
      return blockCyclic(split.block, n, extent, index);
  }
}

/** torch.chunk: equal shards of ceil(extent / n) while they last. */
function chunk(extent: number, n: number, index: number): { start: number; length: number } {
  const size = Math.ceil(extent / n);
  const start = Math.min(extent, size * index);
  return { start, length: Math.min(extent - start, size) };
}

function blockCyclic(block: number, n: number, extent: number, index: number): RunPiece[] {
  const whole = Math.floor(extent / block);
  const count = Math.max(0, Math.ceil((whole - index) / n));
  const round = block * n;
  const list: RunPiece[] = count === 0 ? [] : [{ start: index * block, length: block, stride: round, count }];
  if (whole % n === index) list.push({ start: whole * block, length: extent - whole * block });
  return list;
}
