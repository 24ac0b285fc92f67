// SPDX-License-Identifier: Apache-2.0
// Proves that every element that a side wants of a tensor has a source, and names who misses what.

import type { DimRuns } from '@nccl-ext/core';
import type { SideCopy } from '../plan/plan-request.js';
import type { Part, SidePattern } from '../plan/side-pattern.js';
import { describeBox, uncovered } from './boxes.js';
import { errorAt, type ManifestPlace } from './manifest-error.js';
import type { ManifestBox } from './manifest-schema.js';

/** A box that somebody wants. */
export interface WantedBox {
  readonly box: ManifestBox;
  readonly place: ManifestPlace;
}

/** @throws ERR_COVERAGE naming rank, tensor and field. */
export function requireBoxesCovered(
  name: string,
  wanted: Iterable<WantedBox>,
  source: readonly SideCopy[],
): void {
  const held = source.flatMap(({ pattern }) => boxesOfPattern(pattern));
  const proved = new Set<string>();
  for (const { box, place } of wanted) {
    const key = describeBox(box);
    if (proved.has(key)) continue;
    proved.add(key);
    const missing = uncovered(box, held);
    if (missing === undefined) continue;
    throw errorAt(
      'ERR_COVERAGE',
      place,
      `wants ${name}${key}, of which no source rank has ${describeBox(missing)}`,
      {
        seen: missing,
      },
    );
  }
}

const known = new WeakMap<SidePattern, readonly ManifestBox[]>();

function boxesOfPattern(pattern: SidePattern): readonly ManifestBox[] {
  let boxes = known.get(pattern);
  if (boxes === undefined) {
    boxes = pattern.parts.flatMap((part) => boxesOfPart(part).map(({ box }) => box));
    known.set(pattern, boxes);
  }
  return boxes;
}

/** A box of a part, and where it begins in the part's local extents. */
interface PartBox {
  readonly box: ManifestBox;
  readonly local: readonly number[];
}

/** The boxes that a part consists of: products of the intervals of its dimensions. */
export function boxesOfPart({ dims }: Part): readonly PartBox[] {
  let boxes: readonly PartBox[] = [{ box: { start: [], size: [] }, local: [] }];
  for (const dim of dims) {
    const intervals = intervalsOf(dim);
    boxes = boxes.flatMap(({ box, local }) =>
      intervals.map((interval) => ({
        box: { start: [...box.start, interval.start], size: [...box.size, interval.length] },
        local: [...local, interval.local],
      })),
    );
  }
  return boxes;
}

function intervalsOf({ runs }: DimRuns): { start: number; length: number; local: number }[] {
  return runs.flatMap(({ start, length, stride, count, local }) =>
    Array.from({ length: count }, (_, i) => ({
      start: start + i * stride,
      length,
      local: local + i * length,
    })),
  );
}
