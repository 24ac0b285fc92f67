// SPDX-License-Identifier: Apache-2.0
// Small layouts and plans from which refusals start.

import { type DType, type Layout, layout, mesh, shard } from '@nccl-ext/core';
import { createPlan, type TransferPlan } from '@nccl-ext/m2n';

/** Rows over two ranks. */
export function rowsOf(shape: readonly number[], dtype: DType = 'f32', startRank = 0): Layout {
  return layout({ shape, dtype, mesh: mesh({ x: 2 }, { startRank }), placements: { x: shard(0) } });
}

/** Rows of [8, 6] on ranks 0 and 1. */
export const halves: Layout = rowsOf([8, 6]);

/** Columns of [8, 6] on ranks 2 and 3. */
export const columns: Layout = layout({
  shape: [8, 6],
  dtype: 'f32',
  mesh: mesh({ x: 2 }, { startRank: 2 }),
  placements: { x: shard(1) },
});

/** A plan of one tensor `w`. */
export function planWith(source: Layout, destination: Layout): TransferPlan {
  return createPlan({ tensors: [{ name: 'w', source, destination }] });
}
