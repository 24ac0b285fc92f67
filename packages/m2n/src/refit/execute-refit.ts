// SPDX-License-Identifier: Apache-2.0
// A refit of its own: plans, makes the ranks in this process, runs it; whatever happens, nothing is left behind.

import { type LocalWorldOptions, localWorld, type World } from '@nccl-ext/core';
import { createPlan } from '../plan/create-plan.js';
import type { TensorRequest } from '../plan/plan-request.js';
import type { TransferPlan } from '../plan/transfer-plan.js';
import { deviceValues } from './device-values/device-values.js';
import { planTopology } from './plan-topology.js';
import { ProgressMeter } from './progress-meter.js';
import type { RefitProgress, RefitResult } from './refit-result.js';
import { type RunRefitOptions, runRefit, timed } from './run-refit.js';
import { hostValues, type ShardValues } from './shard-values.js';
import type { ValueSource } from './values.js';

export interface ExecuteRefitOptions
  extends Omit<LocalWorldOptions, 'ranks'>,
    Pick<RunRefitOptions, 'verify' | 'check' | 'repeat' | 'version' | 'transferSms'> {
  readonly tensors: readonly TensorRequest[];
  readonly worldSize: number;
  readonly values: ValueSource;
  readonly onProgress?: ((progress: RefitProgress) => void) | undefined;
}

/**
 * Moves `tensors` from their sources to their destinations over `worldSize` ranks of this process.
 *
 * @throws what planning, preparing and moving throw; ERR_VERIFY when a byte differs; the reason of `signal` when it fires. The new version
 * is reported only when every rank has it.
 */
export async function executeRefit(options: ExecuteRefitOptions): Promise<RefitResult> {
  const { tensors, worldSize, values, onProgress, signal, ...others } = options;
  const { verify, check, repeat, version, transferSms, ...worldOptions } = others;
  signal?.throwIfAborted();
  const meter = new ProgressMeter(onProgress);
  meter.begin('plan', 0);
  const planned = await timed(() =>
    createPlan({ tensors, worldSize, ...planTopology(worldOptions.topology, worldSize) }),
  );
  const plan = planned.value;
  const world = await localWorld({ ...worldOptions, ranks: worldSize, signal });
  const abort = (): void => abortAll(world);
  signal?.addEventListener('abort', abort);
  try {
    const shards = shardValues(world, plan, values);
    const run = { shards, verify, check, repeat, version, transferSms, meter, signal };
    return { ...(await runRefit(world, plan, run)), planMs: planned.ms };
  } catch (error) {
    signal?.throwIfAborted();
    throw error;
  } finally {
    signal?.removeEventListener('abort', abort);
    await world.dispose();
  }
}

/** GPUs make values that can be made anywhere; data passes through the host. */
function shardValues(world: World, plan: TransferPlan, values: ValueSource): ShardValues {
  const { generated } = values;
  if (world.backend.name === 'embedded' || generated === undefined) return hostValues(plan, values);
  return deviceValues(plan, { ...values, generated });
}

function abortAll(world: World): void {
  for (const communicator of world.ranks)
    if (!communicator.disposed) communicator.abort('the refit was interrupted');
}
