// SPDX-License-Identifier: Apache-2.0
// The m2n calls of the backend: prepare a transfer together, put executions of it on streams, watch and end it.

import type {
  ErrorRecord,
  M2nSpi,
  Outcome,
  PrepareConfig,
  TransferHandle,
  TransferPath,
} from '../../contract/index.js';
import { operations } from '../control/records.js';
import { capturedUse } from '../host/capture.js';
import { collective, refuseAll, takeDisagreement } from '../host/collective.js';
import { enqueue } from '../host/enqueue.js';
import { errorRecord, failed, isError, succeeded } from '../host/errors.js';
import type { BufferState, RankState, SharedTransfer, TransferState } from '../host/objects.js';
import { type BackendState, foreign } from '../host/state.js';
import { offsetOf } from '../memory/address.js';
import { buildProgram, hashBytes, placeHashes } from './build-program.js';
import { checkBounds } from './check-bounds.js';
import { checkOverlap } from './check-overlap.js';
import { checkPeers } from './check-peers.js';
import { freeTransferState } from './dispose-transfer.js';
import { checkHashGroups } from './hash-groups.js';
import { type PreparePart, preparePart } from './prepare-part.js';
import { header, sharedLayout } from './program-layout.js';
import { pathsOf, trafficOf } from './transfer-paths.js';

const op = 'prepareTransfer';

export function m2nCalls(state: BackendState): M2nSpi {
  return {
    prepareTransfer: (handle, config) => prepare(state, handle, config),

    enqueueTransfer(handle, streamHandle) {
      const stream = state.stream(streamHandle, 'transfer');
      if (isError(stream)) return state.refuse(stream);
      const transfer = state.owned('transfer', handle, 'transfer');
      if (isError(transfer)) return state.refuse(transfer);
      if (transfer.disposal !== undefined)
        return state.refuse(errorRecord('ERR_DISPOSED', 'transfer', 'the transfer is being disposed'));
      const wrong = foreign(transfer, stream.owner, 'transfer');
      if (wrong !== undefined) return state.refuse(wrong);
      const status = enqueue(state, stream, [operations.transfer, transfer.program, 0, 0, 0]);
      if (status !== 0) return status;
      if (stream.capture === undefined) transfer.uses.set(stream, stream.enqueued);
      else capturedUse(stream.capture, transfer);
      return 0;
    },

    progressOf(handle) {
      const transfer = state.handles.get('transfer', handle, 'progressOf');
      if (isError(transfer)) return { writtenBytes: 0, completed: 0 };
      const { world, rank } = transfer.owner;
      const { written } = sharedLayout(world.options.ranks);
      const shared = transfer.shared.address;
      return {
        writtenBytes: state.arena.space(shared).f64[(offsetOf(shared) + written) / 8 + rank]!,
        completed: state.arena.space(transfer.program).f64[
          offsetOf(transfer.program) / 8 + header.completed
        ]!,
      };
    },

    pathsOf(handle) {
      const transfer = state.handles.get('transfer', handle, 'pathsOf');
      return isError(transfer) ? [] : transfer.paths;
    },

    async disposeTransfer(handle) {
      const transfer = state.owned('transfer', handle, 'disposeTransfer');
      if (isError(transfer)) return failed(transfer);
      if (transfer.graphs > 0)
        return failed(
          errorRecord(
            'ERR_BUSY',
            'disposeTransfer',
            `a graph of rank ${transfer.owner.rank} still uses this transfer`,
            {
              rank: transfer.owner.rank,
              help: 'Free the graph first.',
            },
          ),
        );
      transfer.disposal ??= freeTransferState(state, transfer);
      await transfer.disposal;
      return succeeded(undefined);
    },
  };
}

async function prepare(
  state: BackendState,
  handle: number,
  config: PrepareConfig,
): Promise<Outcome<TransferHandle>> {
  const rank = state.rank(handle, op);
  if (isError(rank)) return failed(rank);
  const { digest } = config.program;
  const falsified = takeDisagreement(rank, op) ? `${digest} (falsified)` : digest;
  return collective<PreparePart | ErrorRecord, TransferHandle>(rank, {
    op,
    topic: op,
    agreed: { field: 'plan digest', value: `${falsified}${config.verify ? ', verified' : ''}` },
    part: preparePart(state, rank, config),
    finish: (parts) => finish(state, parts),
  });
}

function finish(
  state: BackendState,
  parts: readonly (PreparePart | ErrorRecord)[],
): readonly Outcome<TransferHandle>[] {
  if (parts.some(isError))
    return refuseAll(
      op,
      parts.map((part) => (isError(part) ? part : undefined)),
    );
  const sound = parts as readonly PreparePart[];
  const bounds = sound.map((part) => checkBounds(part, sound));
  if (bounds.some((error) => error !== undefined)) return refuseAll(op, bounds);
  const wrong =
    checkPeers(sound) ?? checkOverlap(sound) ?? (sound[0]!.verify ? checkHashGroups(sound) : undefined);
  if (wrong !== undefined)
    return refuseAll(
      op,
      sound.map(({ rank }) => (rank.rank === wrong.rank ? wrong : undefined)),
    );
  return open(state, sound);
}

/** Makes the transfer on all ranks, or on none. */
function open(state: BackendState, parts: readonly PreparePart[]): readonly Outcome<TransferHandle>[] {
  const taken: number[] = [];
  const take = (address: number | undefined): number => {
    if (address === undefined) throw outOfMemory;
    taken.push(address);
    return address;
  };
  try {
    const layout = sharedLayout(parts.length);
    const hashesAt = Math.ceil(layout.bytes / 8) * 8;
    const verify = parts[0]!.verify;
    const address = take(state.arena.allocateZeroed(hashesAt + (verify ? hashBytes(parts) : 0)));
    const hashes = verify ? placeHashes(parts, address + hashesAt) : new Map<string, number>();
    const programs = parts.map((part) => take(buildProgram(state.arena, part, parts, address, hashes)));
    const traffic = parts.map(({ program }) => trafficOf(program.sends));
    const shared: SharedTransfer = { address, holders: parts.length };
    return parts.map((part, rank) =>
      succeeded(addTransfer(state, part, programs[rank]!, shared, pathsOf(traffic, rank))),
    );
  } catch (cause) {
    if (cause !== outOfMemory) throw cause;
    for (const address of taken) state.arena.release(address);
    return parts.map(({ rank }) =>
      failed(
        errorRecord('ERR_OUT_OF_MEMORY', op, 'no memory for the programs of all ranks', { rank: rank.rank }),
      ),
    );
  }
}

/** Leaves `open` from anywhere inside. */
const outOfMemory = new Error('out of memory');

function addTransfer(
  state: BackendState,
  part: PreparePart,
  program: number,
  shared: SharedTransfer,
  paths: readonly TransferPath[],
): TransferHandle {
  const owner: RankState = part.rank;
  const buffers = new Set<BufferState>();
  for (const binding of [...part.sources, ...part.destinations])
    if (binding !== undefined) buffers.add(binding.buffer);
  for (const buffer of buffers) buffer.transfers++;
  const transfer: TransferState = {
    kind: 'transfer',
    handle: 0,
    owner,
    program,
    shared,
    paths,
    buffers: [...buffers],
    uses: new Map(),
    graphs: 0,
    disposal: undefined,
  };
  owner.objects.add(transfer);
  return state.handles.add(transfer);
}
