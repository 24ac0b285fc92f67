// SPDX-License-Identifier: Apache-2.0
// Gives the ranks of each side devices and SMs of their own, as where trainer and engine have a half of the GPUs each.

import { type LocalWorldOptions, NcclExtError } from '@nccl-ext/core';
import { requireArray } from '@nccl-ext/core/extend';
import type { SideCopy } from '../plan/plan-request.js';
import type { RefitLayouts } from './refit-layouts.js';

/** What the ranks of each side get. */
export interface SidePlacement {
  /** The k-th source rank is on the k-th device of this list, which goes round. Both lists or none; then `devices` is not needed. */
  readonly sourceDevices?: readonly number[] | undefined;
  readonly destinationDevices?: readonly number[] | undefined;
  /** SMs of every source rank, and of every rank that is a destination only, which needs few. Both or none. */
  readonly sourceSms?: number | undefined;
  readonly destinationSms?: number | undefined;
}

/** The same for all ranks at once, as in `localWorld`: instead of what each side gets. */
export type SharedPlacement = Pick<LocalWorldOptions, 'devices' | 'sms'>;

/** Options of `localWorld`, by rank. */
export interface RankPlacement {
  readonly devices?: readonly number[];
  readonly sms?: readonly number[];
}

/**
 * By rank what was asked for by side; empty where nothing was.
 *
 * @throws ERR_INVALID_ARGUMENT when one of two is missing, a list is empty, a rank is on both sides and would have two devices, or
 * `shared` says the same for all ranks.
 */
export function placeSides(
  layouts: RefitLayouts,
  placement: SidePlacement,
  shared: SharedPlacement = {},
): RankPlacement {
  const { sourceDevices, destinationDevices, sourceSms, destinationSms } = placement;
  requireOneWay('devices', shared.devices, 'sourceDevices', sourceDevices);
  requireOneWay('sms', shared.sms, 'sourceSms', sourceSms);
  const devices =
    sourceDevices === undefined && destinationDevices === undefined
      ? undefined
      : placeDevices(
          layouts,
          requireDevices('sourceDevices', sourceDevices),
          requireDevices('destinationDevices', destinationDevices),
        );
  const sms =
    sourceSms === undefined && destinationSms === undefined
      ? undefined
      : placeSms(
          layouts,
          requireGiven('sourceSms', sourceSms),
          requireGiven('destinationSms', destinationSms),
        );
  return { ...(devices === undefined ? {} : { devices }), ...(sms === undefined ? {} : { sms }) };
}

function placeDevices(
  { tensors, worldSize }: RefitLayouts,
  onSources: readonly number[],
  onDestinations: readonly number[],
): readonly number[] {
  const sources = ranksOf(tensors.map(({ source }) => source));
  const destinations = ranksOf(tensors.map(({ destination }) => destination));
  const both = destinations.find((rank) => sources.includes(rank));
  if (both !== undefined) {
    throw new NcclExtError(
      'ERR_INVALID_ARGUMENT',
      `Rank ${both} is a source and a destination; it cannot be on devices of both sides.`,
      {
        rank: both,
        field: 'destinationDevices',
        help: 'Pass devices, one per rank, or do not colocate the sides.',
      },
    );
  }
  // Ranks on neither side hold nothing; they only take part.
  const devices = Array.from({ length: worldSize }, () => onSources[0]!);
  for (const [k, rank] of sources.entries()) devices[rank] = onSources[k % onSources.length]!;
  for (const [k, rank] of destinations.entries()) devices[rank] = onDestinations[k % onDestinations.length]!;
  return devices;
}

function placeSms(
  { tensors, worldSize }: RefitLayouts,
  onSources: number,
  onDestinations: number,
): readonly number[] {
  const sms = Array.from({ length: worldSize }, () => onDestinations);
  for (const rank of ranksOf(tensors.map(({ source }) => source))) sms[rank] = onSources;
  return sms;
}

/** Ranks that hold anything, ascending. */
function ranksOf(sides: readonly (readonly SideCopy[])[]): readonly number[] {
  // Many tensors share few patterns.
  const patterns = new Set(sides.flatMap((copies) => copies.map(({ pattern }) => pattern)));
  const ranks = new Set([...patterns].flatMap(({ parts }) => parts.flatMap((part) => [...part.ranks])));
  return [...ranks].sort((a, b) => a - b);
}

function requireDevices(field: string, devices: readonly number[] | undefined): readonly number[] {
  const list = requireGiven(field, devices);
  requireArray(field, list);
  if (list.length > 0) return list;
  throw new NcclExtError('ERR_INVALID_ARGUMENT', `${field} is empty.`, { field });
}

function requireOneWay(field: string, shared: unknown, sideField: string, side: unknown): void {
  if (shared === undefined || side === undefined) return;
  throw new NcclExtError('ERR_INVALID_ARGUMENT', `${field} and ${sideField} exclude each other.`, {
    field,
    help: `Pass ${field} for all ranks, or one value for each side.`,
  });
}

function requireGiven<T>(field: string, value: T | undefined): T {
  if (value !== undefined) return value;
  throw new NcclExtError('ERR_INVALID_ARGUMENT', `${field} is missing.`, {
    field,
    help: 'Say it for both sides.',
  });
}
