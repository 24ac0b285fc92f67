// SPDX-License-Identifier: Apache-2.0
// Groups the tensors of a request into classes and proves for each class that it can be transferred.

import { isCastable, NcclExtError } from '@nccl-ext/core';
import type { NormalisedRequest } from './normalise-request.js';
import type { PlanClass, PlanContext } from './plan-class.js';
import { proveCoverage } from './prove-coverage.js';
import { Side } from './side.js';

export interface Classes {
  readonly classes: readonly PlanClass[];
  /** Class of each requested tensor. */
  readonly classOf: Int32Array;
  /** First entry of each requested tensor in the plan's list. */
  readonly entryOf: Int32Array;
  /** Length of the plan's list. */
  readonly entries: number;
}

interface OpenClass extends PlanClass {
  readonly entries: number[];
}

/** @throws ERR_SHAPE_MISMATCH, ERR_CAST or ERR_COVERAGE, naming the tensor. */
export function buildClasses(context: PlanContext, request: NormalisedRequest): Classes {
  const { tensors, source: from, destination: to } = request;
  const sides: (Side | undefined)[] = [];
  const sideOf = (number: number): Side => {
    sides[number] ??= new Side(request.sides[number]!, context.geometry);
    return sides[number];
  };
  const byPair = new Map<number, OpenClass>();
  const classes: OpenClass[] = [];
  const classOf = new Int32Array(tensors.length);
  const entryOf = new Int32Array(tensors.length);
  let entries = 0;
  for (let i = 0; i < tensors.length; i++) {
    const pair = from[i]! * request.sides.length + to[i]!;
    let cls = byPair.get(pair);
    if (!cls) {
      const source = sideOf(from[i]!);
      const destination = sideOf(to[i]!);
      requireTransferable(tensors[i]!.name, source, destination);
      cls = { index: classes.length, source, destination, entries: [] };
      classes.push(cls);
      byPair.set(pair, cls);
    }
    cls.entries.push(entries);
    classOf[i] = cls.index;
    entryOf[i] = entries;
    entries += Math.max(cls.source.slots, cls.destination.slots);
  }
  return { classes, classOf, entryOf, entries };
}

function requireTransferable(name: string, source: Side, destination: Side): void {
  if (!sameShape(source.shape, destination.shape)) {
    throw new NcclExtError(
      'ERR_SHAPE_MISMATCH',
      `${name} is [${source.shape.join(', ')}] at the source and [${destination.shape.join(', ')}] at the destination.`,
      {
        field: name,
        expected: source.shape,
        seen: destination.shape,
        help: 'Both sides must describe one global tensor.',
      },
    );
  }
  if (!isCastable(source.dtype, destination.dtype)) {
    throw new NcclExtError(
      'ERR_CAST',
      `${name} cannot go from ${source.dtype} to ${destination.dtype}; only f64 f32 f16 bf16 f8e4m3 f8e5m2 convert into each other.`,
      {
        field: name,
        expected: source.dtype,
        seen: destination.dtype,
        help: 'Give both sides the same dtype.',
      },
    );
  }
  proveCoverage(name, source, destination);
}

function sameShape(a: readonly number[], b: readonly number[]): boolean {
  return a === b || (a.length === b.length && a.every((extent, d) => extent === b[d]));
}

/** Distinct pairs of geometries, whatever the rank numbers. */
export function countPatterns(classes: readonly PlanClass[]): number {
  const texts = new Map<Side, string>();
  const textOf = (side: Side): string => {
    let text = texts.get(side);
    if (text === undefined) {
      const atoms = side.atoms.map(({ region, members }) => {
        const held = members.map((m) => `${m.ranks.length}@${m.byteOffset}/${m.byteStrides.join()}`);
        return `${region.id}:${held.join('+')}`;
      });
      text = `${side.dtype}[${side.shape.join()}]${atoms.join(';')}`;
      texts.set(side, text);
    }
    return text;
  };
  return new Set(classes.map(({ source, destination }) => `${textOf(source)}>${textOf(destination)}`)).size;
}
