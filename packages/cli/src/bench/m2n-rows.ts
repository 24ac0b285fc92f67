// SPDX-License-Identifier: Apache-2.0
// The reshards that `bench m2n` measures: half of the ranks send to the other half.

import { type Layout, layout, mesh, type Placement, shard } from '@nccl-ext/core';
import type { Sides } from './sides.js';

/** One measured reshard. */
export interface BenchRow {
  readonly name: string;
  readonly source: Layout;
  readonly destination: Layout;
}

/** Bytes of the runs that a kernel or a copy loop finds short. */
const shortRun = 256;
const longestRun = 2 ** 20;

/**
 * Rows that move about `bytes` bytes between as many sources as destinations, 1 or an even number of each.
 *
 * - row to row: every rank sends its shard as one piece.
 * - row to column: long runs, up to 1 MiB.
 * - 256-byte runs: a tensor of three dimensions, the first sharded before and the last after.
 * - replicas: shards to two replicas, each of half as many larger shards; twice the bytes are written.
 *
 * From one rank to one all of them are the first.
 */
export function m2nRows(sides: Sides, bytes: number): BenchRow[] {
  const half = sides.sources.length;
  const run = longRun(bytes, half);
  const columns = run * half;
  const slab = 256 * shortRun * half;
  const flat = [bytes];
  const matrix = [Math.floor(bytes / columns), columns];
  const cube = [256, Math.floor(bytes / slab), shortRun * half];
  const first = sharded('row to row', sides, flat, 0, 0);
  if (half === 1) return [first];
  return [
    first,
    sharded('row to column', sides, matrix, 0, 1),
    sharded('256-byte runs', sides, cube, 0, 2),
    {
      name: `${half} shards to ${half / 2} x 2 replicas`,
      source: bytesLayout(flat, { x: half }, { x: shard(0) }, sides.sources),
      destination: bytesLayout(flat, { replica: 2, x: half / 2 }, { x: shard(0) }, sides.destinations),
    },
  ];
}

/**
 * The rows that the design's targets for GPUs name, at 1 GiB and 8 ranks: [32768, 32768] bytes from rows to rows and to columns (runs of
 * 8 KiB), [256, 4096, 1024] bytes with 256-byte runs, and shards to two replicas.
 */
export function deviceRows(sides: Sides, bytes: number): BenchRow[] {
  const side = 2 ** Math.floor(Math.log2(bytes) / 2);
  const matrix = [Math.floor(bytes / side), side];
  const [, columns, ...others] = m2nRows(sides, bytes);
  return [
    sharded('row to row', sides, matrix, 0, 0),
    ...(columns === undefined ? [] : [sharded(columns.name, sides, matrix, 0, 1)]),
    ...others,
  ];
}

/** One small step: `bytes` bytes, row to row. */
export function stepRow(sides: Sides, bytes: number): BenchRow {
  return sharded('step', sides, [bytes], 0, 0);
}

/** Shards of dimension `from` on the sources, of dimension `to` on the destinations. */
function sharded(
  name: string,
  { sources, destinations }: Sides,
  shape: readonly number[],
  from: number,
  to: number,
): BenchRow {
  const side = (dim: number, ranks: readonly number[]): Layout =>
    bytesLayout(shape, { x: ranks.length }, { x: shard(dim) }, ranks);
  return { name, source: side(from, sources), destination: side(to, destinations) };
}

/** The longest power of two up to 1 MiB that leaves every source rank a few rows. */
function longRun(bytes: number, half: number): number {
  return Math.min(longestRun, 2 ** Math.floor(Math.log2(bytes / (4 * half * half))));
}

function bytesLayout(
  shape: readonly number[],
  axes: Readonly<Record<string, number>>,
  placements: Readonly<Record<string, Placement>>,
  ranks: readonly number[],
): Layout {
  return layout({ shape, dtype: 'u8', mesh: mesh(axes, { ranks }), placements });
}
