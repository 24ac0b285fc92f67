// SPDX-License-Identifier: Apache-2.0
// Joins two sides, each from a manifest or from rules, into what the planner takes, and proves that all that is wanted is held.

import { type DType, NcclExtError } from '@nccl-ext/core';
import { closestOf } from '../model/model-error.js';
import type { SideCopy, TensorRequest } from '../plan/plan-request.js';
import type { SideStorage } from '../rules/side-storages.js';
import type { ManifestPlace } from './manifest-error.js';

/** A global tensor as one side has it. */
export interface SideTensor {
  readonly dtype: DType;
  /** The extents that the side declares; undefined where they follow from boxes. */
  readonly shape: readonly number[] | undefined;
  /** How far its boxes reach per dimension. */
  readonly reach: readonly number[];
  /** Its copies, once the shape is known. */
  copies(shape: readonly number[]): readonly SideCopy[];
  /** Where it is first mentioned. */
  readonly place: ManifestPlace | undefined;
}

/** One side of a transfer, by the names of global tensors. */
export interface TransferSide {
  /** One past its highest rank. */
  readonly worldSize: number;
  readonly tensors: ReadonlyMap<string, SideTensor>;
  /** @throws ERR_COVERAGE when this side wants of `name` what `source` does not have. */
  requireCovered(name: string, source: readonly SideCopy[]): void;
  /** The storages of a rank; `tensors` are those of the transfer with their copies on this side. */
  storages(rank: number, tensors: readonly JoinedTensor[]): readonly SideStorage[];
}

export interface JoinedTensor {
  readonly name: string;
  readonly copies: readonly SideCopy[];
}

export interface JoinedSides {
  readonly tensors: readonly (TensorRequest & {
    readonly source: readonly SideCopy[];
    readonly destination: readonly SideCopy[];
  })[];
  readonly worldSize: number;
  /** Tensors of the source that the destination does not want. */
  readonly unused: readonly string[];
  sourceStorages(rank: number): readonly SideStorage[];
  destinationStorages(rank: number): readonly SideStorage[];
}

/**
 * The tensors that the destination wants, with both of their sides.
 *
 * @throws ERR_COVERAGE when the destination wants what no source has, ERR_SHAPE_MISMATCH when the sides declare different
 * extents or disagree in the number of dimensions.
 * @example
 * ```ts
 * const source = manifestSide(parseManifest(trainerDocument, 'trainer.json'), 'source');
 * const destination = manifestSide(parseManifest(engineDocument, 'engine.json'), 'destination', { firstRank: 8 });
 * const plan = createPlan(joinSides(source, destination));
 * ```
 */
export function joinSides(source: TransferSide, destination: TransferSide): JoinedSides {
  const tensors = Array.from(destination.tensors, ([name, wanted]) => {
    const held = source.tensors.get(name);
    if (held === undefined) throw notHeld(name, wanted, source);
    const shape = shapeOf(name, held, wanted);
    const copies = held.copies(shape);
    destination.requireCovered(name, copies);
    return { name, source: copies, destination: wanted.copies(shape) };
  });
  const on = (side: 'source' | 'destination'): readonly JoinedTensor[] =>
    tensors.map((tensor) => ({ name: tensor.name, copies: tensor[side] }));
  return {
    tensors,
    worldSize: Math.max(source.worldSize, destination.worldSize),
    unused: [...source.tensors.keys()].filter((name) => !destination.tensors.has(name)),
    sourceStorages: (rank) => source.storages(rank, on('source')),
    destinationStorages: (rank) => destination.storages(rank, on('destination')),
  };
}

function shapeOf(name: string, held: SideTensor, wanted: SideTensor): readonly number[] {
  const [a, b] = [held.shape ?? held.reach, wanted.shape ?? wanted.reach];
  const bothDeclare = held.shape !== undefined && wanted.shape !== undefined;
  if (a.length !== b.length || (bothDeclare && a.join() !== b.join())) {
    const sides = `the source has [${a.join(', ')}], the destination [${b.join(', ')}]`;
    throw new NcclExtError('ERR_SHAPE_MISMATCH', `tensor ${JSON.stringify(name)}: ${sides}`, {
      field: wanted.place?.field ?? name,
      expected: a,
      seen: b,
    });
  }
  return held.shape ?? wanted.shape ?? a.map((extent, d) => Math.max(extent, b[d]!));
}

function notHeld(name: string, { place }: SideTensor, source: TransferSide): NcclExtError {
  const who =
    place === undefined
      ? 'the destination'
      : `rank ${place.rank}, tensor ${JSON.stringify(place.tensor)} (${place.field})`;
  const near = closestOf(name, source.tensors.keys());
  const hint =
    near === undefined
      ? 'the source has no tensors'
      : `the closest that there is, is ${JSON.stringify(near)}`;
  return new NcclExtError(
    'ERR_COVERAGE',
    `${who}: wants ${JSON.stringify(name)}, which no source rank has; ${hint}`,
    {
      field: place?.field ?? name,
      ...(place === undefined ? {} : { rank: place.rank }),
    },
  );
}
