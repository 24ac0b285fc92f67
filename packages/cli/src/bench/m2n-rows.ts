// SPDX-License-Identifier: Apache-2.0
// The reshards that `bench m2n` measures: half of the ranks send to the other half.

import { type Layout, layout, type MeshOptions, mesh, type Placement, shard } from '@nccl-ext/core';

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
 * Rows that move about `bytes` bytes. `ranks` is a multiple of 4.
 *
 * - row to row: every rank sends its shard as one piece.
 * - row to column: long runs, up to 1 MiB.
 * - 256-byte runs: a tensor of three dimensions, the first sharded before and the last after.
 * - replicas: shards to two replicas, each of half as many larger shards; twice the bytes are written.
 */
export function m2nRows(ranks: number, bytes: number): BenchRow[] {
  const half = ranks / 2;
  const run = longRun(bytes, half);
  const columns = run * half;
  const slab = 256 * shortRun * half;
  const flat = [bytes];
  const matrix = [Math.floor(bytes / columns), columns];
  const cube = [256, Math.floor(bytes / slab), shortRun * half];
  const sources = { startRank: 0 };
  const destinations = { startRank: half };
  const one = (shape: readonly number[], dim: number, options: MeshOptions): Layout =>
    bytesLayout(shape, { x: half }, { x: shard(dim) }, options);
  return [
    { name: 'row to row', source: one(flat, 0, sources), destination: one(flat, 0, destinations) },
    { name: 'row to column', source: one(matrix, 0, sources), destination: one(matrix, 1, destinations) },
    { name: '256-byte runs', source: one(cube, 0, sources), destination: one(cube, 2, destinations) },
    {
      name: `${half} shards to ${half / 2} x 2 replicas`,
      source: one(flat, 0, sources),
      destination: bytesLayout(flat, { replica: 2, x: half / 2 }, { x: shard(0) }, destinations),
    },
  ];
}

/**
 * The rows that the design's targets for GPUs name, at 1 GiB and 8 ranks: [32768, 32768] bytes from rows to rows and to columns (runs of
 * 8 KiB), [256, 4096, 1024] bytes with 256-byte runs, and shards to two replicas.
 */
export function deviceRows(ranks: number, bytes: number): BenchRow[] {
  const half = ranks / 2;
  const side = 2 ** Math.floor(Math.log2(bytes) / 2);
  const matrix = [Math.floor(bytes / side), side];
  const at = (dim: number, startRank: number): Layout =>
    bytesLayout(matrix, { x: half }, { x: shard(dim) }, { startRank });
  const [, , runs, replicas] = m2nRows(ranks, bytes);
  return [
    { name: 'row to row', source: at(0, 0), destination: at(0, half) },
    { name: 'row to column', source: at(0, 0), destination: at(1, half) },
    runs!,
    replicas!,
  ];
}

/** One small step: `bytes` bytes, row to row. */
export function stepRow(ranks: number, bytes: number): BenchRow {
  return { ...m2nRows(ranks, bytes)[0]!, name: 'step' };
}

/** The longest power of two up to 1 MiB that leaves every source rank a few rows. */
function longRun(bytes: number, half: number): number {
  return Math.min(longestRun, 2 ** Math.floor(Math.log2(bytes / (4 * half * half))));
}

function bytesLayout(
  shape: readonly number[],
  axes: Readonly<Record<string, number>>,
  placements: Readonly<Record<string, Placement>>,
  options: MeshOptions,
): Layout {
  return layout({ shape, dtype: 'u8', mesh: mesh(axes, options), placements });
}
