// SPDX-License-Identifier: Apache-2.0
// How many blocks and threads a launch has: what CUDA allows on every GPU, checked by name before the driver refuses the whole launch.

import { NcclExtError } from '../errors/nccl-ext-error.js';
import { describe, requireInteger } from '../mesh/require-integer.js';

/** Up to three extents, x first; those left out are 1. */
export type Extent =
  | number
  | readonly [x: number]
  | readonly [x: number, y: number]
  | readonly [x: number, y: number, z: number];

const axes = ['x', 'y', 'z'] as const;
const gridLimits = [0x7fff_ffff, 65_535, 65_535] as const;
const blockLimits = [1024, 1024, 64] as const;
const maxThreads = 1024;

/** Blocks along each axis. */
export function gridOf(grid: unknown): [number, number, number] {
  return extentOf('grid', grid, gridLimits);
}

/** Threads of a block along each axis, at most 1024 in all. */
export function blockOf(block: unknown): [number, number, number] {
  const extent = extentOf('block', block, blockLimits);
  const threads = extent[0] * extent[1] * extent[2];
  if (threads <= maxThreads) return extent;
  throw new NcclExtError(
    'ERR_INVALID_ARGUMENT',
    `block has ${extent.join(' x ')} = ${threads} threads; a block has at most ${maxThreads}.`,
    { field: 'block', expected: maxThreads, seen: threads },
  );
}

function extentOf(field: string, value: unknown, limits: readonly number[]): [number, number, number] {
  const given: readonly unknown[] = typeof value === 'number' ? [value] : Array.isArray(value) ? value : [];
  if (given.length < 1 || given.length > 3) {
    throw new NcclExtError(
      'ERR_INVALID_ARGUMENT',
      `${field} must be a number or an array of one to three numbers, got ${describe(value)}.`,
      { field, seen: value },
    );
  }
  const along = (axis: 0 | 1 | 2): number =>
    axis < given.length
      ? requireInteger('ERR_INVALID_ARGUMENT', `${field}.${axes[axis]}`, given[axis], 1, limits[axis])
      : 1;
  return [along(0), along(1), along(2)];
}
