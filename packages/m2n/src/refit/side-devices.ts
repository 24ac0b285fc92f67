// SPDX-License-Identifier: Apache-2.0
// Puts the ranks of each side on devices of their own, as where trainer and engine have a half of the GPUs each.

import { NcclExtError } from '@nccl-ext/core';
import { requireArray } from '@nccl-ext/core/extend';
import type { SideCopy } from '../plan/plan-request.js';
import type { RefitLayouts } from './refit-layouts.js';

/** Devices of both sides: the k-th rank of a side is on the k-th device of its list, which goes round. */
export interface SideDevices {
  readonly sourceDevices?: readonly number[] | undefined;
  readonly destinationDevices?: readonly number[] | undefined;
}

/**
 * The `devices` of `localWorld`: undefined when neither list is given.
 *
 * @throws ERR_INVALID_ARGUMENT when one list is missing or empty, and when a rank is on both sides.
 */
export function sideDevices(
  { tensors, worldSize }: RefitLayouts,
  { sourceDevices, destinationDevices }: SideDevices,
): readonly number[] | undefined {
  if (sourceDevices === undefined && destinationDevices === undefined) return undefined;
  const onSources = requireDevices('sourceDevices', sourceDevices);
  const onDestinations = requireDevices('destinationDevices', destinationDevices);
  const sources = ranksOf(tensors.map(({ source }) => source));
  const destinations = ranksOf(tensors.map(({ destination }) => destination));
  const both = destinations.find((rank) => sources.includes(rank));
  if (both !== undefined) {
    throw new NcclExtError(
      'ERR_INVALID_ARGUMENT',
      `Rank ${both} is a source and a destination; it cannot be on devices of both sides.`,
      { field: 'destinationDevices', help: 'Pass devices, one per rank, or do not colocate the sides.' },
    );
  }
  // Ranks on neither side hold nothing; they only take part.
  const devices = Array.from({ length: worldSize }, () => onSources[0]!);
  for (const [k, rank] of sources.entries()) devices[rank] = onSources[k % onSources.length]!;
  for (const [k, rank] of destinations.entries()) devices[rank] = onDestinations[k % onDestinations.length]!;
  return devices;
}

/** Ranks that hold anything, ascending. */
function ranksOf(sides: readonly (readonly SideCopy[])[]): readonly number[] {
  // Many tensors share few patterns.
  const patterns = new Set(sides.flatMap((copies) => copies.map(({ pattern }) => pattern)));
  const ranks = new Set([...patterns].flatMap(({ parts }) => parts.flatMap((part) => [...part.ranks])));
  return [...ranks].sort((a, b) => a - b);
}

function requireDevices(field: string, devices: readonly number[] | undefined): readonly number[] {
  if (devices !== undefined) requireArray(field, devices);
  if (devices !== undefined && devices.length > 0) return devices;
  throw new NcclExtError('ERR_INVALID_ARGUMENT', `${field} is missing or empty.`, {
    field,
    help: 'Pass device indices for both sides, as in sourceDevices: [0, 1], destinationDevices: [2, 3].',
  });
}
