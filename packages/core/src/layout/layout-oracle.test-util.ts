// SPDX-License-Identifier: Apache-2.0
// Random layouts, and a naive oracle of them that shares out plain lists of indices, one mesh axis after another.

import fc, { type GeneratorValue } from 'fast-check';
import { mesh } from '../mesh/device-mesh.js';
import { type Layout, layout } from './layout.js';
import {
  blockCyclic,
  interleaved,
  type Placement,
  ranges,
  replicate,
  type Split,
  shard,
  sizes,
  strided,
} from './placement.js';

/** torch.chunk on a list; torch returns fewer chunks than asked where DTensor pads with empty ones. */
function chunkList(list: readonly number[], n: number): number[][] {
  const size = Math.max(1, Math.ceil(list.length / n));
  return Array.from({ length: n }, (_, c) => list.slice(c * size, (c + 1) * size));
}

/** Cuts a list into segments, chunks each, and gives coordinate c its parts in segment order. */
function chunkSegments(list: readonly number[], segments: readonly number[], n: number): number[][] {
  const shares: number[][] = Array.from({ length: n }, () => []);
  let at = 0;
  for (const segment of segments) {
    chunkList(list.slice(at, at + segment), n).forEach((part, c) => {
      shares[c]!.push(...part);
    });
    at += segment;
  }
  return shares;
}

/** What each of n coordinates gets of a list, read off the words that define the splits. */
function share(split: Split, list: readonly number[], n: number): number[][] {
  switch (split.kind) {
    case 'even':
    case 'chunk':
      return chunkList(list, n);
    case 'sizes': {
      const rest = [...list];
      return split.sizes.map((size) => rest.splice(0, size));
    }
    case 'ranges':
      return split.ranges.map(([start, end]) => list.slice(start, end));
    case 'strided':
      return chunkSegments(list, Array(split.groups).fill(list.length / split.groups), n);
    case 'interleaved':
      return chunkSegments(list, split.segments, n);
    case 'blockCyclic':
      return Array.from({ length: n }, (_, c) =>
        list.filter((_, i) => Math.floor(i / split.block) % n === c),
      );
  }
}

/** Per rank position and dimension, the global indices in local order. */
function oracle(
  shape: readonly number[],
  axes: readonly number[],
  placements: readonly Placement[],
): number[][][] {
  let holders: number[][][] = [shape.map((extent) => Array.from({ length: extent }, (_, i) => i))];
  axes.forEach((n, axis) => {
    const placement = placements[axis]!;
    holders = holders.flatMap((dims) => {
      if (placement.kind === 'replicate') return Array.from({ length: n }, () => dims);
      return share(placement.split, dims[placement.dim]!, n).map((list) => dims.with(placement.dim, list));
    });
  });
  return holders;
}

/** A split that fits lists of each of these lengths. */
function anySplit(g: GeneratorValue, lengths: readonly number[], n: number): Split {
  const least = Math.min(...lengths);
  const equal = lengths.every((length) => length === least);
  const options: (() => Split)[] = [
    () => ({ kind: 'chunk' }),
    () => blockCyclic(g(fc.integer, { min: 1, max: 5 })),
    () =>
      ranges(
        Array.from({ length: n }, () => {
          const start = g(fc.nat, { max: least });
          return [start, start + g(fc.nat, { max: least - start })] as const;
        }),
      ),
  ];
  if (lengths.every((length) => length % n === 0)) options.push(() => ({ kind: 'even' }));
  const groups = [1, 2, 3, 4, 6].filter((k) => lengths.every((length) => length % k === 0));
  options.push(() => strided(groups[g(fc.nat, { max: groups.length - 1 })]!));
  if (equal) {
    const parts = (k: number): number[] => {
      const cuts = Array.from({ length: k - 1 }, () => g(fc.nat, { max: least })).sort((x, y) => x - y);
      return [...cuts, least].map((end, i) => end - (cuts[i - 1] ?? 0));
    };
    options.push(
      () => sizes(parts(n)),
      () => interleaved(parts(g(fc.integer, { min: 1, max: 4 }))),
    );
  }
  return options[g(fc.nat, { max: options.length - 1 })]!();
}

interface Case {
  readonly subject: Layout;
  readonly expected: number[][][];
}

export function anyLayout(g: GeneratorValue, maxExtent: number, maxDims: number): Case {
  const axes = Array.from({ length: g(fc.integer, { min: 1, max: 4 }) }, () =>
    g(fc.integer, { min: 1, max: 4 }),
  );
  const dims = g(fc.nat, { max: maxDims });
  const shape = Array.from({ length: dims }, () => g(fc.nat, { max: maxExtent }));
  const placements: Placement[] = [];
  for (const [axis, n] of axes.entries()) {
    if (dims === 0 || g(fc.nat, { max: 4 }) === 0) {
      placements.push(replicate());
      continue;
    }
    const dim = g(fc.nat, { max: dims - 1 });
    const lengths = oracle(shape, axes.slice(0, axis), placements).map((held) => held[dim]!.length);
    placements.push(shard(dim, anySplit(g, [...new Set(lengths)], n)));
  }
  const fromTheEnd = placements.map((p) => (p.kind === 'shard' ? shard(p.dim - dims, p.split) : p));
  const size = axes.reduce((product, n) => product * n, 1);
  const ranks = Array.from({ length: size }, (_, i) => (i * 7 + 3) % 1021);
  const named = Object.fromEntries(axes.map((n, i) => [`a${i}`, n]));
  const subject = layout({
    shape,
    dtype: 'f32',
    mesh: mesh(named, { ranks }),
    placements: g(fc.boolean) ? placements : fromTheEnd,
  });
  return { subject, expected: oracle(shape, axes, placements) };
}
