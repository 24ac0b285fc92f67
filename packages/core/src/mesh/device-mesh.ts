// SPDX-License-Identifier: Apache-2.0
// Names the ranks that hold a tensor and arranges them in a grid, so that placements can speak of axes instead of rank numbers.

import { NcclExtError } from '../errors/nccl-ext-error.js';
import { requireObject } from '../errors/require-kind.js';
import { describe, requireInteger } from './require-integer.js';

/** One named dimension of a mesh. */
export interface MeshAxis {
  readonly name: string;
  readonly size: number;
}

/** The JSON form of a mesh; consecutive ranks are written as `startRank`. */
export interface MeshJSON {
  readonly axes: readonly MeshAxis[];
  readonly startRank?: number;
  readonly ranks?: readonly number[];
}

/** Where {@link mesh} takes its ranks from; at most one of the two. */
export interface MeshOptions {
  /** The first of consecutive ranks; default 0. */
  readonly startRank?: number;
  /** Every rank, row-major over the axes (last axis fastest): distinct non-negative integers in any order. */
  readonly ranks?: readonly number[];
}

const maxRanks = 2 ** 24;

/**
 * A mesh of ranks. `mesh({ dp: 2, tp: 4 })` is ranks 0..7 with tp fastest; no axes at all is one rank.
 *
 * @throws ERR_MESH when a size, a name or the list of ranks is wrong.
 * @example
 * ```ts
 * const trainer = mesh({ dp: 2, tp: 4 });
 * const generator = mesh({ tp: 2 }, { startRank: 8 });
 * trainer.coordinatesOf(6); // [1, 2]
 * generator.ranks; // [8, 9]
 * ```
 */
export function mesh(axes: Readonly<Record<string, number>>, options: MeshOptions = {}): DeviceMesh {
  if (typeof axes !== 'object' || axes === null || Array.isArray(axes)) {
    throw meshError('axes', `axes must be an object such as { dp: 2, tp: 4 }, got ${describe(axes)}`);
  }
  return meshFromAxes(
    Object.entries(axes).map(([name, size]) => ({ name, size })),
    options,
  );
}

/** {@link mesh} from a list of axes, the form that JSON documents use. */
export function meshFromAxes(axes: readonly MeshAxis[], options: MeshOptions = {}): DeviceMesh {
  requireObject('options', options);
  if (options.ranks !== undefined) {
    if (options.startRank !== undefined)
      throw meshError('startRank', 'startRank and ranks exclude each other');
    return new DeviceMesh(axes, options.ranks);
  }
  const size = meshSize(axes);
  const first = requireInteger(
    'ERR_MESH',
    'startRank',
    options.startRank ?? 0,
    0,
    Number.MAX_SAFE_INTEGER - size,
  );
  return new DeviceMesh(
    axes,
    Array.from({ length: size }, (_, i) => first + i),
  );
}

/** Immutable; made by {@link mesh}. */
export class DeviceMesh {
  /** Row-major, last axis fastest; empty for a mesh of one rank without axes. */
  readonly axes: readonly MeshAxis[];
  /** One rank per coordinate, row-major. */
  readonly ranks: readonly number[];
  /** How many ranks there are. */
  readonly size: number;
  readonly #positions: ReadonlyMap<number, number>;

  constructor(axes: readonly MeshAxis[], ranks: readonly number[]) {
    this.size = meshSize(axes);
    this.axes = Object.freeze(axes.map(({ name, size }) => Object.freeze({ name, size })));
    this.#positions = positionsOf(ranks, this.size, this.axes);
    this.ranks = Object.freeze([...ranks]);
    Object.freeze(this);
  }

  /** One coordinate per axis, or undefined for a rank that is not in the mesh. */
  coordinatesOf(rank: number): readonly number[] | undefined {
    let position = this.indexOf(rank);
    if (position < 0) return undefined;
    const coordinates = new Array<number>(this.axes.length);
    for (let i = this.axes.length - 1; i >= 0; i--) {
      const { size } = this.axes[i]!;
      coordinates[i] = position % size;
      position = Math.floor(position / size);
    }
    return coordinates;
  }

  /**
   * The rank at one coordinate per axis.
   *
   * @throws ERR_INVALID_ARGUMENT when there are too few or too many coordinates or one is outside its axis.
   */
  rankAt(coordinates: readonly number[]): number {
    if (!Array.isArray(coordinates) || coordinates.length !== this.axes.length) {
      const got = Array.isArray(coordinates) ? `${coordinates.length}` : describe(coordinates);
      throw new NcclExtError(
        'ERR_INVALID_ARGUMENT',
        `coordinates must have one entry per axis (${this.axes.length}), got ${got}`,
        { field: 'coordinates', expected: this.axes.length, seen: coordinates },
      );
    }
    const position = this.axes.reduce(
      (sum, { name, size }, i) =>
        sum * size +
        requireInteger(
          'ERR_INVALID_ARGUMENT',
          `coordinates[${i}] (axis ${name})`,
          coordinates[i],
          0,
          size - 1,
        ),
      0,
    );
    return this.ranks[position]!;
  }

  /** The position of a rank in {@link ranks}, or -1. */
  indexOf(rank: number): number {
    return this.#positions.get(rank) ?? -1;
  }

  toJSON(): MeshJSON {
    const { axes, ranks } = this;
    const startRank = ranks[0]!;
    return ranks.every((rank, i) => rank === startRank + i) ? { axes, startRank } : { axes, ranks };
  }
}

function meshSize(axes: readonly MeshAxis[]): number {
  const names = new Set<string>();
  let size = 1;
  for (const axis of axes) {
    // Integer-like names would be reordered by JavaScript as object keys, and with them the axes.
    if (typeof axis.name !== 'string' || !/^[A-Za-z_][\w.-]*$/.test(axis.name)) {
      const got = describe(axis.name);
      throw meshError(
        'axes',
        `axes: a name must start with a letter and hold letters, digits, _ . -, got ${got}`,
      );
    }
    if (names.has(axis.name)) throw meshError('axes', `axes: the name ${axis.name} occurs twice`);
    names.add(axis.name);
    size *= requireInteger('ERR_MESH', `axes.${axis.name}`, axis.size, 1);
    if (size > maxRanks) {
      throw meshError('axes', `axes: ${product(axes)} is more than the ${maxRanks} ranks a mesh can have`);
    }
  }
  return size;
}

function positionsOf(
  ranks: readonly number[],
  size: number,
  axes: readonly MeshAxis[],
): ReadonlyMap<number, number> {
  if (!Array.isArray(ranks)) throw meshError('ranks', `ranks must be an array, got ${describe(ranks)}`);
  if (ranks.length !== size) {
    throw new NcclExtError(
      'ERR_MESH',
      `ranks must list ${product(axes)} = ${size} ranks, got ${ranks.length}`,
      {
        field: 'ranks',
        expected: size,
        seen: ranks.length,
      },
    );
  }
  const positions = new Map<number, number>();
  for (let i = 0; i < size; i++) {
    const rank = requireInteger('ERR_MESH', `ranks[${i}]`, ranks[i], 0);
    const earlier = positions.get(rank);
    if (earlier !== undefined) {
      throw meshError(
        'ranks',
        `ranks[${i}] is ${rank}, which ranks[${earlier}] already is; ranks must be distinct`,
      );
    }
    positions.set(rank, i);
  }
  return positions;
}

function product(axes: readonly MeshAxis[]): string {
  return axes.length === 0 ? '(no axes)' : axes.map(({ name, size }) => `${name} ${size}`).join(' x ');
}

function meshError(field: string, message: string): NcclExtError {
  return new NcclExtError('ERR_MESH', message, { field });
}
