// SPDX-License-Identifier: Apache-2.0
// Runs one refit in this process: plan, load, prepare, publish, check; whatever happens, nothing is left behind.

import {
  type Communicator,
  type DType,
  dtypeBytes,
  type LocalWorldOptions,
  localWorld,
  NcclExtError,
  type World,
} from '@nccl-ext/core';
import { publish } from '@nccl-ext/core/extend';
import { createPlan } from '../plan/create-plan.js';
import type { TensorRequest } from '../plan/plan-request.js';
import type { PlannedTensor, TransferPlan } from '../plan/transfer-plan.js';
import { Publication } from '../publish/publication.js';
import { prepareTransfer } from '../transfer/prepare-transfer.js';
import type { Transfer } from '../transfer/transfer.js';
import { checkDestinations } from './check-destinations.js';
import { loadSources } from './load-sources.js';
import { planTopology } from './plan-topology.js';
import { ProgressMeter } from './progress-meter.js';
import type { RefitProgress, RefitResult } from './refit-result.js';
import { allocateStorages, arenaBytes, type StorageArena } from './storage-arena.js';
import type { ValueSource } from './values.js';

export interface ExecuteRefitOptions extends Omit<LocalWorldOptions, 'ranks'> {
  readonly tensors: readonly TensorRequest[];
  readonly worldSize: number;
  readonly values: ValueSource;
  /** Hash what is sent and what arrived, and compare every destination byte with the values read again. */
  readonly verify: boolean;
  readonly version: number | string;
  readonly onProgress?: ((progress: RefitProgress) => void) | undefined;
}

/** One rank's memory and its transfer. */
interface RankState {
  readonly communicator: Communicator;
  readonly sources: StorageArena;
  readonly destinations: StorageArena;
  readonly transfer: Transfer;
}

/**
 * Moves `tensors` from their sources to their destinations over `worldSize` ranks of this process.
 *
 * @throws what planning, preparing and moving throw; ERR_VERIFY when a byte differs; the reason of `signal` when it fires. The new version
 * is reported only when every rank has it.
 */
export async function executeRefit(options: ExecuteRefitOptions): Promise<RefitResult> {
  const { tensors, worldSize, values, verify, version, onProgress, signal, ...worldOptions } = options;
  signal?.throwIfAborted();
  const meter = new ProgressMeter(onProgress);
  meter.begin('plan', 0);
  const planned = await timed(() =>
    createPlan({ tensors, worldSize, ...planTopology(worldOptions.topology, worldSize) }),
  );
  const plan = planned.value;
  requireMemory(plan);
  const world = await localWorld({ ...worldOptions, ranks: worldSize, signal });
  const abort = (): void => abortAll(world);
  signal?.addEventListener('abort', abort);
  try {
    const loaded = await timed(() => loadAll(world, plan, values, meter, signal));
    const prepared = await timed(() => prepareAll(world, plan, loaded.value, verify));
    const moved = await timed(() => publishAll(prepared.value, version, meter));
    const checked = await timed(() =>
      verify ? checkAll(prepared.value, plan, values, meter, signal) : undefined,
    );
    const { wireBytes, localBytes, lowerBoundBytes } = plan.totals;
    return {
      ok: true,
      tensors: tensors.length,
      parameterBytes: parameterBytes(plan),
      wireBytes,
      localBytes,
      lowerBoundBytes,
      planMs: planned.ms,
      loadMs: loaded.ms,
      prepareMs: prepared.ms,
      transferMs: moved.ms,
      checkMs: checked.ms,
      gigabytesPerSecond: moved.ms === 0 ? 0 : (wireBytes + localBytes) / moved.ms / 1e6,
      verified: verify,
      backend: world.backend.name,
      ranks: worldSize,
      version,
      values: values.name,
      plan,
    };
  } catch (error) {
    signal?.throwIfAborted();
    throw error;
  } finally {
    signal?.removeEventListener('abort', abort);
    await world.dispose();
  }
}

async function loadAll(
  world: World,
  plan: TransferPlan,
  values: ValueSource,
  meter: ProgressMeter,
  signal: AbortSignal | undefined,
): Promise<readonly Omit<RankState, 'transfer'>[]> {
  const states = world.ranks.map((communicator) => ({
    communicator,
    sources: allocateStorages(communicator, plan.sourceTensorsOf(communicator.rank)),
    destinations: allocateStorages(communicator, plan.destinationTensorsOf(communicator.rank)),
  }));
  meter.begin('load', sum(states.map((state) => state.sources.bytes)));
  await poisonDestinations(states);
  // One rank after the other: the file is read in order, and the bytes in flight stay bounded.
  for (const { sources } of states) await loadSources(sources, values, (bytes) => meter.add(bytes), signal);
  meter.end();
  return states;
}

/**
 * A running engine's memory holds an older version: it has been touched, and none of its bytes is right by chance.
 */
async function poisonDestinations(states: readonly Omit<RankState, 'transfer'>[]): Promise<void> {
  await Promise.all(
    states.map(async ({ communicator, destinations }) => {
      if (destinations.buffer === undefined) return;
      const stream = communicator.createStream();
      stream.fill(destinations.buffer, 0xde);
      await stream.synchronize();
      await stream.dispose();
    }),
  );
}

function prepareAll(
  world: World,
  plan: TransferPlan,
  states: readonly Omit<RankState, 'transfer'>[],
  verify: boolean,
): Promise<RankState[]> {
  return world.run(async (communicator) => {
    const state = states[communicator.rank]!;
    const transfer = await prepareTransfer(communicator, plan, {
      sources: state.sources.bindings,
      destinations: state.destinations.bindings,
      verify,
    });
    return { ...state, transfer };
  });
}

async function publishAll(
  states: readonly RankState[],
  version: number | string,
  meter: ProgressMeter,
): Promise<void> {
  const total = sum(states.map(({ transfer }) => transfer.progress.bytesPerExecution));
  meter.begin('move', total);
  const poll = setInterval(() => {
    const bytes = sum(states.map(({ transfer }) => transfer.progress.writtenBytes));
    meter.set(bytes);
    publish('refit.progress', () => ({ bytes, totalBytes: total }));
  }, 100);
  try {
    await Promise.all(
      states.map(({ communicator, transfer }) =>
        new Publication().publish({ transfer, stream: communicator.createStream(), version }),
      ),
    );
    meter.end();
  } finally {
    clearInterval(poll);
  }
}

async function checkAll(
  states: readonly RankState[],
  plan: TransferPlan,
  values: ValueSource,
  meter: ProgressMeter,
  signal: AbortSignal | undefined,
): Promise<void> {
  meter.begin('check', sum(states.map(({ destinations }) => destinations.bytes)));
  const sourceDType = (tensor: number): DType => plan.tensors[tensor]!.sourceDType;
  for (const { communicator, destinations } of states) {
    await checkDestinations(
      communicator.rank,
      destinations,
      values,
      sourceDType,
      (bytes) => meter.add(bytes),
      signal,
    );
  }
  meter.end();
}

/** Refuses before anything is allocated what this machine cannot hold. */
function requireMemory(plan: TransferPlan): void {
  let bytes = 0;
  for (let rank = 0; rank < plan.worldSize; rank++) {
    bytes += arenaBytes(plan.sourceTensorsOf(rank)) + arenaBytes(plan.destinationTensorsOf(rank));
  }
  const available = process.availableMemory();
  if (bytes <= available) return;
  throw new NcclExtError(
    'ERR_OUT_OF_MEMORY',
    `The shards of all ranks take ${gigabytes(bytes)}; ${gigabytes(available)} are free on this machine.`,
    {
      op: 'refit',
      expected: available,
      seen: bytes,
      help: 'Use fewer layers (--layers), or plan without data: nccl-ext plan m2n.',
    },
  );
}

function abortAll(world: World): void {
  for (const communicator of world.ranks)
    if (!communicator.disposed) communicator.abort('the refit was interrupted');
}

function parameterBytes(plan: TransferPlan): number {
  const bytes = new Map<number, number>();
  for (const tensor of plan.tensors) bytes.set(tensor.request, tensorBytes(tensor));
  return sum([...bytes.values()]);
}

function tensorBytes({ shape, destinationDType }: PlannedTensor): number {
  return shape.reduce((product, extent) => product * extent, dtypeBytes(destinationDType));
}

function gigabytes(bytes: number): string {
  return `${(bytes / 1e9).toFixed(1)} GB`;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

async function timed<T>(step: () => Promise<T> | T): Promise<{ readonly value: T; readonly ms: number }> {
  const began = performance.now();
  const value = await step();
  return { value, ms: performance.now() - began };
}
