// SPDX-License-Identifier: Apache-2.0
// Binds a plan to memory on every rank, or refuses on every rank: nothing moves and no destination byte changes.

import { type Communicator, NcclExtError, type TransferPathChoice } from '@nccl-ext/core';
import type { M2nSpi } from '@nccl-ext/core/contract';
import {
  backendOf,
  describe,
  optionTable,
  publish,
  rankHandleOf,
  refuseTogether,
  requireKnownOptions,
  requireObject,
  unwrap,
} from '@nccl-ext/core/extend';
import type { ExecutablePlan } from '../plan/executable-plan.js';
import { type Bindings, bindTensors } from './bind-tensors.js';
import { tableBytes } from './move-bytes.js';
import { Transfer } from './transfer.js';

/** Where the tensors of a plan live on this rank, by storage name (a tensor's own name unless it is fused or tied). */
export interface PrepareOptions {
  /** Read by the transfer. Needed for what `plan.sourceTensorsOf(rank)` lists. */
  readonly sources?: Bindings;
  /** Written by the transfer. Needed for what `plan.destinationTensorsOf(rank)` lists. */
  readonly destinations?: Bindings;
  /** Hash every (peer, tensor) where it is sent and again where it arrived; a difference is ERR_VERIFY. Default false. */
  readonly verify?: boolean;
  /**
   * SMs that the kernels of this transfer may hold on this rank: 1 to `communicator.device.smBudget`. 0: copy engines alone, for ranks that
   * each have a GPU; what they cannot move (a cast, short runs) is ERR_UNSUPPORTED. They show no progress within a stage (most plans have
   * one, relays add a second): the world's `timeoutMs` must be longer than the largest stage takes, else peers take this rank for one that
   * stands still, and the transfer ends with ERR_TIMEOUT. Default: kernels on `smBudget`; but copy engines, which are as fast then, where the
   * rank has a GPU alone, no `sms` of its own, and sends to other GPUs alone, at least 1 GiB in contiguous runs of 128 MiB and more on
   * average. `paths()` of the transfer says which. Ranks need not agree. The embedded backend has no SMs and moves everything.
   */
  readonly sms?: number | undefined;
  /**
   * How GPU ranks exchange bytes; equal on all ranks. `auto`: a rank writes into memory that it can reach and sends to the others through
   * NCCL. `mapped`: writing only, ERR_UNSUPPORTED with the reason where a rank cannot. `sendrecv`: sending only, for tests and measurements.
   * Default: `communicator.transferPath`. The embedded backend always writes.
   */
  readonly path?: TransferPathChoice;
}

const optionNames: readonly (keyof PrepareOptions)[] = ['sources', 'destinations', 'verify', 'sms', 'path'];

/**
 * Collective over the whole communicator, ranks in neither mesh included. Do it once per plan and memory, then enqueue as often as needed.
 *
 * @throws ERR_DISAGREEMENT when ranks hold different plans or options (ranks and field named), ERR_INVALID_ARGUMENT for a missing
 * binding or an option that is wrong or unknown, ERR_OUT_OF_BOUNDS for one that is too small, ERR_OVERLAP when a destination shares bytes with anything else, ERR_RANK_LOST
 * on the other ranks when one refuses, ERR_UNSUPPORTED when the backend cannot reshard, or not by copy engines alone (`sms: 0`).
 * @example
 * ```ts
 * const transfer = await prepareTransfer(comm, plan, { sources: { w: trainerBuffer }, destinations: { w: engineBuffer } });
 * transfer.enqueue(stream);
 * await stream.synchronize();
 * ```
 */
export function prepareTransfer(
  communicator: Communicator,
  plan: ExecutablePlan,
  options: PrepareOptions = {},
): Promise<Transfer> {
  return prepareWith(communicator, () => ({ plan, options }));
}

/** What a call asks a rank to prepare. */
interface Asked {
  readonly plan: ExecutablePlan;
  readonly options: PrepareOptions;
}

/** As {@link prepareTransfer}; what `ask` throws on one rank refuses on all. */
export async function prepareWith(communicator: Communicator, ask: () => Asked): Promise<Transfer> {
  const backend = backendOf(communicator);
  const { rank } = communicator;
  const { began, plan, m2n, program, bound, verify, sms, path } = await refuseTogether(
    communicator,
    { op: 'prepare transfer', topic: 'transfer' },
    () => {
      const { plan, options } = ask();
      const began = performance.now();
      requirePlan(plan);
      requireObject('options', options);
      requireKnownOptions(options, optionNames);
      const { sources = {}, destinations = {}, verify = false, sms } = options;
      requireBoolean(verify);
      const { path = communicator.transferPath } = options;
      requirePath(path);
      requireSms(communicator, sms);
      requireSameSize(communicator, plan);
      const value = {
        began,
        plan,
        verify,
        sms,
        path,
        m2n: requireM2n(backend.m2n, backend.info.name),
        bound: bindTensors(communicator, plan, sources, destinations),
        program: plan.program(rank, { receives: verify }),
      };
      return { value, fields: { digest: plan.digest, verify, path } };
    },
  );
  const config = { program, ...bound, verify, path, ...(sms === undefined ? {} : { sms }) };
  const handle = unwrap(await m2n.prepareTransfer(rankHandleOf(communicator), config));
  const sentBytes = tableBytes(program.sends);
  publish('transfer.prepared', () => ({
    rank,
    digest: plan.digest,
    tensors: plan.tensors.length,
    sendBytes: sentBytes,
    prepareMs: performance.now() - began,
  }));
  return new Transfer(communicator, plan, { runtime: backend.runtime, m2n }, handle, sentBytes);
}

function requirePlan(plan: ExecutablePlan): void {
  const methods = ['program', 'sourceTensorsOf', 'destinationTensorsOf'] as const;
  if (typeof plan?.digest === 'string' && methods.every((name) => typeof plan[name] === 'function')) return;
  throw new NcclExtError('ERR_INVALID_ARGUMENT', `plan must be a plan, got ${describe(plan)}.`, {
    field: 'plan',
    help: 'Make one with createPlan, or planFromJSON for a stored one.',
  });
}

function requireBoolean(verify: unknown): void {
  if (typeof verify === 'boolean') return;
  throw new NcclExtError('ERR_INVALID_ARGUMENT', `verify must be true or false, got ${describe(verify)}.`, {
    field: 'verify',
    seen: verify,
  });
}

/** As many SMs as a GPU may have, where the rank has none. */
const mostSms = 1024;

function requireSms({ rank, device }: Communicator, sms: unknown): void {
  const most = device.smBudget === 0 ? mostSms : device.smBudget;
  if (sms === undefined || (Number.isInteger(sms) && (sms as number) >= 0 && (sms as number) <= most)) return;
  throw new NcclExtError(
    'ERR_INVALID_ARGUMENT',
    `sms must be an integer from 0 to ${most}, the SMs that rank ${rank} may hold, got ${describe(sms)}.`,
    {
      rank,
      field: 'sms',
      expected: most,
      seen: sms,
      help: 'Ask for fewer, or give the rank more when the world is made.',
    },
  );
}

function requirePath(path: unknown): void {
  const { kind } = optionTable.transferPath;
  if (kind.is(path)) return;
  throw new NcclExtError('ERR_INVALID_ARGUMENT', `path must be ${kind.allowed}, got ${describe(path)}.`, {
    field: 'path',
    seen: path,
  });
}

function requireSameSize(communicator: Communicator, plan: ExecutablePlan): void {
  if (plan.worldSize === communicator.size) return;
  throw new NcclExtError(
    'ERR_INVALID_ARGUMENT',
    `The plan is for ${plan.worldSize} ranks; the communicator has ${communicator.size}.`,
    {
      field: 'worldSize',
      expected: communicator.size,
      seen: plan.worldSize,
      help: `Pass worldSize: ${communicator.size} to createPlan.`,
    },
  );
}

function requireM2n(m2n: M2nSpi | undefined, backend: string): M2nSpi {
  if (m2n !== undefined) return m2n;
  throw new NcclExtError('ERR_UNSUPPORTED', `The ${backend} backend cannot reshard.`, {
    help: "Use localWorld({ ranks, backend: 'embedded' }), or update the backend package.",
  });
}
