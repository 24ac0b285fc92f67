// SPDX-License-Identifier: Apache-2.0
// Runs refits over the ranks of a world: load, prepare, then publish and check as often as asked.

import { dtypeBytes, type World } from '@nccl-ext/core';
import type { PlannedTensor, TransferPlan } from '../plan/transfer-plan.js';
import { prepareTransfer } from '../transfer/prepare-transfer.js';
import type { ProgressMeter } from './progress-meter.js';
import { publishRanks, type ServingRank, serving } from './publish-ranks.js';
import { allocateRanks, poisonDestinations, type RankMemory } from './rank-memory.js';
import type { RefitResult, RefitTimes } from './refit-result.js';
import { medians } from './refit-times.js';
import type { ShardValues } from './shard-values.js';
import { sum } from './sum.js';

export interface RunRefitOptions {
  readonly shards: ShardValues;
  /** Hash what is sent and what arrived, as part of the move. */
  readonly verify: boolean;
  /** Compare every destination byte with its source's value after each move. */
  readonly check: boolean;
  /** As `sms` of `prepareTransfer`, for every rank. */
  readonly transferSms?: number | undefined;
  /** How often the prepared weights are published. */
  readonly repeat: number;
  /** The first one; later ones count on, see {@link versionOf}. */
  readonly version: number | string;
  readonly meter: ProgressMeter;
  readonly signal: AbortSignal | undefined;
}

/**
 * Moves what `plan` says over all ranks of `world`, which are in this process. Memory goes with the world.
 *
 * @throws ERR_OUT_OF_MEMORY before anything is allocated; what preparing and moving throw; ERR_VERIFY when a byte differs.
 */
export async function runRefit(
  world: World,
  plan: TransferPlan,
  options: RunRefitOptions,
): Promise<Omit<RefitResult, 'planMs'>> {
  const { shards, verify, check, repeat, version } = options;
  const loaded = await timed(() => loadAll(world, plan, options));
  const prepared = await timed(() => prepareAll(world, plan, loaded.value, options));
  const repeats: RefitTimes[] = [];
  for (let k = 0; k < repeat; k++)
    repeats.push(await publishAndCheck(prepared.value, versionOf(version, k), options));
  const times = medians(repeats);
  const { wireBytes, localBytes, lowerBoundBytes } = plan.totals;
  const tensors = tensorBytes(plan);
  return {
    ok: true,
    tensors: tensors.length,
    parameterBytes: sum(tensors),
    wireBytes,
    localBytes,
    lowerBoundBytes,
    loadMs: loaded.ms,
    prepareMs: prepared.ms,
    ...times,
    repeats,
    gigabytesPerSecond: times.moveMs === 0 ? 0 : (wireBytes + localBytes) / times.moveMs / 1e6,
    hashed: verify,
    verified: check,
    backend: world.backend.name,
    ranks: world.ranks.length,
    devices: world.ranks.map(({ device }) => device.index),
    version: versionOf(version, repeat - 1),
    values: shards.name,
    plan,
  };
}

async function loadAll(
  world: World,
  plan: TransferPlan,
  { shards, meter, signal }: RunRefitOptions,
): Promise<readonly RankMemory[]> {
  const ranks = allocateRanks(world, plan);
  meter.begin('load', sum(ranks.map(({ sources }) => sources.bytes)));
  await shards.load(ranks, { onBytes: (bytes) => meter.add(bytes), signal });
  meter.end();
  return ranks;
}

function prepareAll(
  world: World,
  plan: TransferPlan,
  ranks: readonly RankMemory[],
  { verify, transferSms }: RunRefitOptions,
): Promise<ServingRank[]> {
  return world.run(async (communicator) => {
    const rank = ranks[communicator.rank]!;
    const transfer = await prepareTransfer(communicator, plan, {
      sources: rank.sources.bindings,
      destinations: rank.destinations.bindings,
      verify,
      sms: transferSms,
    });
    return serving(rank, transfer);
  });
}

async function publishAndCheck(
  ranks: readonly ServingRank[],
  version: number | string,
  { shards, check, meter, signal }: RunRefitOptions,
): Promise<RefitTimes> {
  signal?.throwIfAborted();
  await poisonDestinations(ranks);
  const times = await publishRanks(ranks, version, meter);
  if (!check) return { ...times, checkMs: 0 };
  const checked = await timed(async () => {
    meter.begin('check', sum(ranks.map(({ destinations }) => destinations.bytes)));
    await shards.check(ranks, { onBytes: (bytes) => meter.add(bytes), signal });
    meter.end();
  });
  return { ...times, checkMs: checked.ms };
}

/** The version of repeat `k`: 7, 8, 9; or a, a.1, a.2. */
function versionOf(first: number | string, k: number): number | string {
  if (typeof first === 'number') return first + k;
  return k === 0 ? first : `${first}.${k}`;
}

/** Bytes of every global tensor at the destination. */
function tensorBytes(plan: TransferPlan): readonly number[] {
  const bytes: number[] = [];
  for (const tensor of plan.tensors) bytes[tensor.request] = destinationBytes(tensor);
  return bytes;
}

function destinationBytes({ shape, destinationDType }: PlannedTensor): number {
  return shape.reduce((product, extent) => product * extent, dtypeBytes(destinationDType));
}

/** How long a step took, with its value. */
export async function timed<T>(
  step: () => Promise<T> | T,
): Promise<{ readonly value: T; readonly ms: number }> {
  const began = performance.now();
  const value = await step();
  return { value, ms: performance.now() - began };
}
