// SPDX-License-Identifier: Apache-2.0
// Checks everything that a layout is made from, once, and brings it into its normal form.

import { type DType, dtypeBytes, dtypes, isDType } from '../dtype/dtype.js';
import { NcclExtError } from '../errors/nccl-ext-error.js';
import type { DeviceMesh } from '../mesh/device-mesh.js';
import { describe, requireInteger } from '../mesh/require-integer.js';
import { checkSplit } from './check-split.js';
import type { LayoutInput } from './layout.js';
import { normaliseSplit, type Placement, replicate } from './placement.js';
import { splitExtent } from './split-runs.js';

/** A layout's parts in normal form: one placement per axis, dims non-negative, all frozen. */
export interface CheckedInput {
  readonly shape: readonly number[];
  readonly dtype: DType;
  readonly mesh: DeviceMesh;
  readonly placements: readonly Placement[];
  readonly elements: number;
}

/** Throws ERR_LAYOUT for the first thing that is wrong. */
export function checkedInput(input: LayoutInput): CheckedInput {
  if (typeof input !== 'object' || input === null) {
    throw layoutError(
      'input',
      `a layout is made from { shape, dtype, mesh, placements }, got ${describe(input)}`,
    );
  }
  const { dtype, mesh } = input;
  if (!isDType(dtype)) {
    throw layoutError('dtype', `dtype must be one of ${dtypes.join(' ')}, got ${describe(dtype)}`);
  }
  if (typeof mesh?.coordinatesOf !== 'function') {
    throw layoutError('mesh', `mesh must be a DeviceMesh as mesh({ tp: 4 }) makes it, got ${describe(mesh)}`);
  }
  if (!Array.isArray(input.shape)) {
    throw layoutError('shape', `shape must be an array of extents, got ${describe(input.shape)}`);
  }
  const shape = Object.freeze(
    Array.from(input.shape, (extent, i) => requireInteger('ERR_LAYOUT', `shape[${i}]`, extent, 0)),
  );
  const elements = countElements(shape, dtype);
  const placements = Object.freeze(
    perAxis(input.placements, mesh).map((placement, axis) => {
      return normalise(placement, shape.length, `placements.${mesh.axes[axis]!.name}`);
    }),
  );
  checkSplits(shape, mesh, placements);
  return { shape, dtype, mesh, placements, elements };
}

function countElements(shape: readonly number[], dtype: DType): number {
  if (shape.includes(0)) return 0;
  const elements = shape.reduce((product, extent) => product * extent, 1);
  if (elements * dtypeBytes(dtype) > Number.MAX_SAFE_INTEGER) {
    const terms = `${shape.join(' x ')} elements of ${dtypeBytes(dtype)} bytes`;
    throw layoutError('shape', `shape: ${terms} are more than the 2^53 - 1 bytes a tensor can have`);
  }
  return elements;
}

function perAxis(placements: LayoutInput['placements'], mesh: DeviceMesh): readonly Placement[] {
  const names = mesh.axes.map(({ name }) => name);
  const known = names.length === 0 ? 'the mesh has no axes' : `the mesh has the axes ${names.join(', ')}`;
  if (typeof placements !== 'object' || placements === null) {
    throw layoutError('placements', `placements must be an array or an object, got ${describe(placements)}`);
  }
  if (Array.isArray(placements)) {
    if (placements.length === names.length) return placements;
    const message = `placements must have one entry per mesh axis (${names.length}), got ${placements.length}; ${known}`;
    throw layoutError('placements', message);
  }
  const byName = placements as Readonly<Record<string, Placement>>;
  for (const name of Object.keys(byName)) {
    if (!names.includes(name))
      throw layoutError(`placements.${name}`, `placements.${name} names no axis; ${known}`);
  }
  return names.map((name) => (Object.hasOwn(byName, name) ? byName[name]! : replicate()));
}

function normalise(placement: Placement, rank: number, field: string): Placement {
  if (placement?.kind === 'replicate') return replicate();
  if (placement?.kind !== 'shard') {
    throw layoutError(field, `${field} must be replicate() or shard(dim), got ${describe(placement)}`);
  }
  if (rank === 0)
    throw layoutError(field, `${field} shards dimension ${placement.dim} of a scalar, which has none`);
  const dim = requireInteger('ERR_LAYOUT', `${field}.dim`, placement.dim, -rank, rank - 1);
  const split = normaliseSplit(placement.split, `${field}.split`);
  return Object.freeze({ kind: 'shard', dim: dim < 0 ? dim + rank : dim, split });
}

/** Axes left to right, as the splits nest; `extents` are the different local extents that earlier axes left. */
function checkSplits(shape: readonly number[], mesh: DeviceMesh, placements: readonly Placement[]): void {
  const left = new Map<number, ReadonlySet<number>>();
  placements.forEach((placement, axis) => {
    if (placement.kind !== 'shard') return;
    const { dim, split } = placement;
    const { name, size } = mesh.axes[axis]!;
    const extents = left.get(dim) ?? new Set([shape[dim]!]);
    const what = left.has(dim) ? `what earlier axes left of dim ${dim}` : `dim ${dim}`;
    for (const extent of extents)
      checkSplit(split, extent, { field: `placements.${name}`, what, axis: name, n: size });
    if (placements.some((later, i) => i > axis && later.kind === 'shard' && later.dim === dim)) {
      const next = new Set<number>();
      for (const extent of extents)
        for (let i = 0; i < size; i++) next.add(splitExtent(split, size, extent, i));
      left.set(dim, next);
    }
  });
}

function layoutError(field: string, message: string): NcclExtError {
  return new NcclExtError('ERR_LAYOUT', message, { field });
}
