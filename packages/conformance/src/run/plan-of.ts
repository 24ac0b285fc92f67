// SPDX-License-Identifier: Apache-2.0
// From the tensors of a case to the plan that the product makes of them.

import { type DType, dtypeBytes, type Layout, layout, mesh, type Topology } from '@nccl-ext/core';
import { createPlan, patternOf, type TensorRequest, type TransferPlan } from '@nccl-ext/m2n';
import type { SideSpec, TensorSpec } from '../cases/case.js';
import type { SideName } from '../oracle/element-values.js';
import { dtypesOf, imageOf, placesOf, type Slot, storageName, storedOf } from './image.js';

/** The plan of a case's tensors: `t0`, `t1` and so on. */
export function planOf(tensors: readonly TensorSpec[], worldSize: number, topology: Topology): TransferPlan {
  const ranks = Array.from({ length: worldSize }, (_, rank) => rank);
  const images = {
    source: ranks.map((rank) => imageOf(tensors, 'source', rank)),
    destination: ranks.map((rank) => imageOf(tensors, 'destination', rank)),
  };
  const sideOf = (spec: TensorSpec, tensor: number, side: SideName): TensorRequest[SideName] => {
    const dtype = dtypesOf(spec)[side];
    const stored = storedOf(spec, side);
    if (!stored.padding && !stored.fusedIn && !stored.copies) return layoutOf(spec.shape, dtype, spec[side]);
    return placesOf(spec, side).map((place, copy) => {
      const slotOn = (rank: number): Slot =>
        images[side][rank]!.slots.find((slot) => slot.tensor === tensor && slot.copy === copy)!;
      return {
        storage: storageName(spec, tensor, side, copy),
        pattern: patternOf(layoutOf(spec.shape, dtype, place), {
          byteOffset: (rank) => slotOn(rank).byteOffset - slotOn(rank).storageOffset,
          byteStrides: (rank) => stridesOf(slotOn(rank), dtypeBytes(dtype)),
        }),
      };
    });
  };
  return createPlan({
    worldSize,
    topology,
    tensors: tensors.map((spec, tensor) => ({
      name: `t${tensor}`,
      source: sideOf(spec, tensor, 'source'),
      destination: sideOf(spec, tensor, 'destination'),
    })),
  });
}

/** Row-major, with rows at their pitch. */
function stridesOf({ shard, pitchBytes }: Slot, size: number): readonly number[] {
  const strides: number[] = [];
  let step = pitchBytes;
  for (let dim = shard.shape.length - 1; dim >= 0; dim--) {
    if (dim === shard.shape.length - 1) {
      strides.unshift(size);
      continue;
    }
    strides.unshift(step);
    step *= shard.shape[dim]!;
  }
  return strides;
}

/** The layout of one side. */
export function layoutOf(
  shape: readonly number[],
  dtype: DType,
  { axes, startRank, ranks, placements }: SideSpec,
): Layout {
  const where = ranks === undefined ? { startRank: startRank ?? 0 } : { ranks };
  return layout({ shape, dtype, mesh: mesh(axes, where), placements });
}
