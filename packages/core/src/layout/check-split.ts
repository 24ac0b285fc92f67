// SPDX-License-Identifier: Apache-2.0
// Refuses a split that does not fit the extent it is given, and shows the arithmetic.

import { NcclExtError } from '../errors/nccl-ext-error.js';
import type { Split } from './placement.js';

/** Where a split stands, for its error messages. */
export interface SplitPlace {
  /** As in `placements.tp`. */
  readonly field: string;
  /** As in `dim 1`. */
  readonly what: string;
  readonly axis: string;
  /** Coordinates of the axis. */
  readonly n: number;
}

/** Throws ERR_LAYOUT unless `n` coordinates can split `extent` this way. */
export function checkSplit(split: Split, extent: number, place: SplitPlace): void {
  const { what, n } = place;
  switch (split.kind) {
    case 'even':
      if (extent % n !== 0) {
        refuse(
          place,
          `even shards of ${what} need a multiple of ${place.axis} = ${n}, got ${extent} = ${n} x ${Math.floor(extent / n)} + ${extent % n}`,
          `Use 'chunk' for shards of ceil(${extent} / ${n}) = ${Math.ceil(extent / n)}, the last ones shorter, or sizes([...]).`,
        );
      }
      return;
    case 'sizes':
      checkCount(split.sizes, 'sizes', place);
      checkSum(split.sizes, 'sizes', extent, place);
      return;
    case 'interleaved':
      checkSum(split.segments, 'segments', extent, place);
      return;
    case 'ranges': {
      checkCount(split.ranges, 'ranges', place);
      const index = split.ranges.findIndex(([, end]) => end > extent);
      if (index >= 0) {
        refuse(
          place,
          `ranges[${index}] = [${split.ranges[index]!.join(', ')}) ends after ${what}, which is ${extent}`,
        );
      }
      return;
    }
    case 'strided':
      if (extent % split.groups !== 0) {
        refuse(
          place,
          `strided needs a multiple of groups = ${split.groups} in ${what}, got ${extent} = ${split.groups} x ${Math.floor(extent / split.groups)} + ${extent % split.groups}`,
          'Use interleaved([...]) for segments of different lengths.',
        );
      }
  }
}

function checkCount(list: readonly unknown[], name: string, place: SplitPlace): void {
  if (list.length !== place.n) {
    refuse(
      place,
      `${name} must have one entry per coordinate of ${place.axis} (${place.n}), got ${list.length}`,
    );
  }
}

function checkSum(list: readonly number[], name: string, extent: number, place: SplitPlace): void {
  const sum = list.reduce((total, value) => total + value, 0);
  if (sum === extent) return;
  const terms = list.length > 8 ? [...list.slice(0, 8), '...'] : list;
  refuse(
    place,
    `${name} must sum to ${place.what}, which is ${extent}, got ${terms.join(' + ') || 'nothing'} = ${sum}`,
  );
}

function refuse(place: SplitPlace, message: string, help?: string): never {
  const details = { field: place.field, ...(help === undefined ? {} : { help }) };
  throw new NcclExtError('ERR_LAYOUT', `${place.field}: ${message}`, details);
}
