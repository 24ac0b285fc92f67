// SPDX-License-Identifier: Apache-2.0
// Says which elements of a global tensor each rank of a mesh holds, and where: shape, dtype, mesh and one placement per axis.

import { type DType, dtypeBytes } from '../dtype/dtype.js';
import { NcclExtError } from '../errors/nccl-ext-error.js';
import type { DeviceMesh, MeshJSON } from '../mesh/device-mesh.js';
import { describe, requireInteger } from '../mesh/require-integer.js';
import { checkedInput } from './check-layout.js';
import { type DimSharding, dimSharding } from './dim-sharding.js';
import type { Placement } from './placement.js';
import { type DimRuns, globalToLocal, localToGlobal } from './runs.js';

/** What {@link layout} takes. */
export interface LayoutInput {
  /**
   * Global extents, any number of dimensions including none (a scalar), each from 0 to 2^53 - 1.
   * For f4e2m1x2 the last one counts bytes of two values.
   */
  readonly shape: readonly number[];
  readonly dtype: DType;
  readonly mesh: DeviceMesh;
  /** One per mesh axis, or by axis name; axes that are not named replicate. */
  readonly placements: readonly Placement[] | Readonly<Record<string, Placement>>;
}

/** The JSON form of a layout. */
export interface LayoutJSON {
  readonly shape: readonly number[];
  readonly dtype: DType;
  readonly mesh: MeshJSON;
  readonly placements: readonly Placement[];
}

/**
 * The layout of a tensor over a mesh. Cheap: what ranks hold is computed when first asked for.
 *
 * @throws ERR_LAYOUT when a placement does not fit the shape or the mesh; the message shows the arithmetic.
 * @example
 * ```ts
 * const weight = layout({ shape: [10, 1024], dtype: 'bf16', mesh: mesh({ dp: 2, tp: 4 }), placements: { tp: shard(0) } });
 * weight.localShape(7); // [1, 1024]: 10 over 4 is 3, 3, 3, 1
 * weight.holders([4, 0]); // [1, 5]: tp 1 of both replicas
 * ```
 */
export function layout(input: LayoutInput): Layout {
  return new Layout(input);
}

/** Immutable; made by {@link layout}. */
export class Layout {
  readonly shape: readonly number[];
  readonly dtype: DType;
  readonly mesh: DeviceMesh;
  /** One per mesh axis; dims are non-negative. */
  readonly placements: readonly Placement[];
  /** Elements of the global tensor; for f4e2m1x2 bytes of two values. */
  readonly elements: number;
  /** Bytes of the global tensor. */
  readonly bytes: number;
  #dims: readonly DimSharding[] | undefined;

  constructor(input: LayoutInput) {
    const { shape, dtype, mesh, placements, elements } = checkedInput(input);
    this.shape = shape;
    this.dtype = dtype;
    this.mesh = mesh;
    this.placements = placements;
    this.elements = elements;
    this.bytes = elements * dtypeBytes(dtype);
    Object.freeze(this);
  }

  /**
   * Per tensor dimension who holds what; computed once.
   *
   * @throws ERR_LAYOUT when nested periodic splits do not keep step and one rank would need more than 2^20 runs.
   */
  get dims(): readonly DimSharding[] {
    this.#dims ??= Object.freeze(
      this.shape.map((extent, dim) => dimSharding(dim, extent, this.mesh, this.placements)),
    );
    return this.#dims;
  }

  /** What a rank holds of each dimension; undefined for ranks outside the mesh. */
  runs(rank: number): readonly DimRuns[] | undefined {
    const coordinates = this.mesh.coordinatesOf(rank);
    return coordinates && this.dims.map((dim) => dim.runs[this.#flatten(dim, coordinates)]!);
  }

  /** The extents that a rank holds; undefined for ranks outside the mesh. */
  localShape(rank: number): readonly number[] | undefined {
    return this.runs(rank)?.map(({ extent }) => extent);
  }

  /** The bytes that a rank holds; 0 for ranks outside the mesh. */
  localBytes(rank: number): number {
    const shape = this.localShape(rank);
    return shape ? shape.reduce((product, extent) => product * extent, dtypeBytes(this.dtype)) : 0;
  }

  /**
   * The global index of an element that a rank holds.
   *
   * @throws ERR_INVALID_ARGUMENT for a rank outside the mesh or an index outside its local shape.
   */
  toGlobal(rank: number, localIndex: readonly number[]): readonly number[] {
    const runs = this.#runsOf(rank);
    requireIndex(
      'localIndex',
      localIndex,
      runs.map(({ extent }) => extent),
    );
    return runs.map((dim, i) => localToGlobal(dim, localIndex[i]!));
  }

  /**
   * Where a rank keeps an element, or undefined when it does not hold it.
   *
   * @throws ERR_INVALID_ARGUMENT for a rank outside the mesh or an index outside the global shape.
   */
  toLocal(rank: number, globalIndex: readonly number[]): readonly number[] | undefined {
    const runs = this.#runsOf(rank);
    requireIndex('globalIndex', globalIndex, this.shape);
    const local: number[] = [];
    for (let i = 0; i < runs.length; i++) {
      const position = globalToLocal(runs[i]!, globalIndex[i]!);
      if (position === undefined) return undefined;
      local.push(position);
    }
    return local;
  }

  /**
   * The ranks that hold an element, in mesh order; none where `ranges` leave a gap.
   *
   * @throws ERR_INVALID_ARGUMENT for an index outside the global shape.
   */
  holders(globalIndex: readonly number[]): readonly number[] {
    requireIndex('globalIndex', globalIndex, this.shape);
    const held = this.dims.map(({ runs }, i) =>
      runs.map((dim) => globalToLocal(dim, globalIndex[i]!) !== undefined),
    );
    return this.mesh.ranks.filter((rank) => {
      const coordinates = this.mesh.coordinatesOf(rank)!;
      return this.dims.every((dim, i) => held[i]![this.#flatten(dim, coordinates)]);
    });
  }

  toJSON(): LayoutJSON {
    const { shape, dtype, mesh, placements } = this;
    return { shape, dtype, mesh: mesh.toJSON(), placements };
  }

  #flatten({ axes }: DimSharding, coordinates: readonly number[]): number {
    return axes.reduce((sum, axis) => sum * this.mesh.axes[axis]!.size + coordinates[axis]!, 0);
  }

  #runsOf(rank: number): readonly DimRuns[] {
    const runs = this.runs(rank);
    if (runs) return runs;
    throw new NcclExtError(
      'ERR_INVALID_ARGUMENT',
      `rank ${describe(rank)} is not in the mesh of this layout`,
      {
        field: 'rank',
        seen: rank,
        help: 'layout.mesh.ranks lists its ranks.',
      },
    );
  }
}

function requireIndex(field: string, index: readonly number[], shape: readonly number[]): void {
  if (!Array.isArray(index) || index.length !== shape.length) {
    const got = Array.isArray(index) ? `${index.length}` : describe(index);
    throw new NcclExtError(
      'ERR_INVALID_ARGUMENT',
      `${field} must have one entry per dimension (${shape.length}), got ${got}`,
      { field, expected: shape.length, seen: index },
    );
  }
  shape.forEach((extent, i) => {
    if (extent === 0) {
      throw new NcclExtError(
        'ERR_INVALID_ARGUMENT',
        `${field}[${i}]: dimension ${i} is empty, no index is in it`,
        { field },
      );
    }
    requireInteger('ERR_INVALID_ARGUMENT', `${field}[${i}]`, index[i], 0, extent - 1);
  });
}
