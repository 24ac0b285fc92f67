// SPDX-License-Identifier: Apache-2.0
// Draws tensors with any layouts on both sides, over any ranks of a small world, and topologies for it.

import {
  blockCyclic,
  type DeviceMesh,
  type DType,
  type Layout,
  layout,
  mesh,
  type Placement,
  ranges,
  replicate,
  shard,
  sizes,
  strided,
  type Topology,
} from '@nccl-ext/core';
import fc from 'fast-check';
import type { TensorRequest } from './plan-request.js';
import { cluster } from './simulate-plan.test-util.js';

/** Ranks of the worlds in which layouts are drawn. */
export const worldSize = 12;

const placements = (extents: readonly number[], axes: readonly number[]): fc.Arbitrary<Placement[]> => {
  if (extents.length === 0) return fc.constant(axes.map(() => replicate()));
  const left = extents.slice();
  const used = new Set<number>();
  return fc
    .tuple(
      ...axes.map(() =>
        fc.tuple(
          fc.integer({ min: -2, max: extents.length - 1 }),
          fc.integer({ min: 0, max: 9 }),
          fc.infiniteStream(fc.nat(1000)),
        ),
      ),
    )
    .map((choices) =>
      axes.map((size, axis) => {
        const [dim, kind, random] = choices[axis]!;
        if (dim < 0) return replicate();
        const extent = left[dim]!;
        const nested = used.has(dim);
        used.add(dim);
        const next = (): number => random.next().value;
        if (kind === 0) return shard(dim, blockCyclic(1 + (next() % 3)));
        if (nested || kind >= 6) return shard(dim);
        if (kind === 1 && extent % 2 === 0) return shard(dim, strided(2));
        if (kind === 2) {
          const ends = Array.from({ length: size - 1 }, () => next() % (extent + 1)).sort((x, y) => x - y);
          return shard(dim, sizes([...ends, extent].map((end, i) => end - (i === 0 ? 0 : ends[i - 1]!))));
        }
        if (kind >= 3 && kind <= 4) {
          const wide = Array.from({ length: size }, (_, i): [number, number] => {
            const start = Math.floor((i * extent) / size);
            const end = Math.ceil(((i + 1) * extent) / size);
            return [Math.max(0, start - (next() % 3)), Math.min(extent, end + (next() % 2))];
          });
          return shard(dim, ranges(wide));
        }
        return shard(dim);
      }),
    );
};

const meshes: fc.Arbitrary<DeviceMesh> = fc
  .tuple(
    fc
      .array(fc.integer({ min: 1, max: 4 }), { minLength: 0, maxLength: 3 })
      .filter((axes) => axes.reduce((p, n) => p * n, 1) <= 8),
    fc.shuffledSubarray(
      Array.from({ length: worldSize }, (_, i) => i),
      { minLength: 8 },
    ),
  )
  .map(([axes, ranks]) =>
    mesh(Object.fromEntries(axes.map((size, i) => [`a${i}`, size])), {
      ranks: ranks.slice(
        0,
        axes.reduce((p, n) => p * n, 1),
      ),
    }),
  );

export const layouts = (shape: readonly number[], dtype: DType): fc.Arbitrary<Layout> =>
  meshes.chain((over) =>
    placements(
      shape,
      over.axes.map(({ size }) => size),
    ).map((list) => layout({ shape, dtype, mesh: over, placements: list })),
  );

const dtypePairs = fc.constantFrom<readonly [DType, DType]>(
  ['f32', 'f32'],
  ['u8', 'u8'],
  ['i64', 'i64'],
  ['f32', 'bf16'],
  ['bf16', 'f8e4m3'],
  ['f16', 'f64'],
);

const shapes: fc.Arbitrary<number[]> = fc
  .array(fc.integer({ min: 0, max: 9 }), { minLength: 0, maxLength: 4 })
  .map((shape) => {
    const large = shape.map((extent, i) => (i < 2 ? extent * 3 : extent % 4));
    return large;
  });

export const tensors = (name: string): fc.Arbitrary<TensorRequest> =>
  fc
    .tuple(shapes, dtypePairs)
    .chain(([shape, [from, to]]) =>
      fc.record({ name: fc.constant(name), source: layouts(shape, from), destination: layouts(shape, to) }),
    );

export const topologies: fc.Arbitrary<Topology> = fc.constantFrom(
  cluster(worldSize, 12, 4),
  cluster(worldSize, 4, 4),
  cluster(worldSize, 3, 2),
  cluster(worldSize, 1, 1),
  cluster(worldSize, 4, 2, 2),
);
