// SPDX-License-Identifier: Apache-2.0
// A plan for one shape between two meshes of consecutive ranks, in one line.

import { layout, mesh, type Placement, type Topology } from '@nccl-ext/core';
import { createPlan } from './create-plan.js';
import type { TensorRequest } from './plan-request.js';
import type { TransferPlan } from './transfer-plan.js';

/** One tensor between two meshes of consecutive ranks. */
export function planOf(
  shape: readonly number[],
  from: readonly [axes: Record<string, number>, placements: Record<string, Placement>, startRank?: number],
  to: readonly [axes: Record<string, number>, placements: Record<string, Placement>, startRank?: number],
  more: {
    readonly topology?: Topology;
    readonly names?: readonly string[];
    readonly dtype?: 'u8' | 'f32' | 'bf16';
  } = {},
): TransferPlan {
  const { names = ['w'], dtype = 'u8', ...rest } = more;
  const side = ([axes, placements, startRank = 0]: typeof from) =>
    layout({ shape, dtype, mesh: mesh(axes, { startRank }), placements });
  const source = side(from);
  const destination = side(to);
  const list: TensorRequest[] = names.map((name) => ({ name, source, destination }));
  return createPlan({ tensors: list, cacheEntries: 0, ...rest });
}
