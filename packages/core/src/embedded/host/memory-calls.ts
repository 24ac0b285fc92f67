// SPDX-License-Identifier: Apache-2.0
// Calls about buffers and windows.

import type { ErrorRecord, RuntimeSpi, WindowHandle } from '../../contract/index.js';
import { offsetOf } from '../memory/address.js';
import { collective, refuseAll, takeDisagreement } from './collective.js';
import { checkInteger, errorRecord, failed, isError, succeeded } from './errors.js';
import type { BufferState, RankState, WindowState } from './objects.js';
import { type BackendState, foreign, isIdle } from './state.js';

type MemoryCalls = Pick<
  RuntimeSpi,
  | 'allocate'
  | 'freeBuffer'
  | 'bufferAddress'
  | 'mapBuffer'
  | 'memoryUsage'
  | 'availableMemoryOf'
  | 'registerWindow'
  | 'freeWindow'
  | 'windowPeers'
>;

/** What a rank brings to the registration of a window. */
interface WindowPart {
  readonly rank: RankState;
  readonly buffer: BufferState | undefined;
  readonly error: ErrorRecord | undefined;
}

export function memoryCalls(state: BackendState): MemoryCalls {
  return {
    allocate(handle, bytes, kind) {
      const rank = state.rank(handle, 'allocate');
      if (isError(rank)) return failed(rank);
      const wrong = checkInteger('allocate', 'bytes', bytes, 0, Number.MAX_SAFE_INTEGER);
      if (wrong !== undefined) return failed(wrong);
      rank.world.crew.sweep();
      const address = state.arena.allocate(bytes);
      if (address === undefined) return failed(outOfMemory(state, rank, bytes));
      const buffer: BufferState = {
        kind: 'buffer',
        handle: 0,
        owner: rank,
        address,
        bytes,
        memory: kind,
        uses: new Map(),
        windows: 0,
        transfers: 0,
        groups: 0,
        graphs: 0,
      };
      state.allocatedBytes += bytes;
      rank.objects.add(buffer);
      return succeeded(state.handles.add(buffer));
    },

    freeBuffer(handle) {
      const buffer = state.owned('buffer', handle, 'freeBuffer');
      if (isError(buffer)) return state.refuse(buffer);
      buffer.owner.world.crew.sweep();
      const user = userOf(buffer);
      if (user !== undefined)
        return state.refuse(
          errorRecord(
            'ERR_BUSY',
            'freeBuffer',
            `${user} still uses this buffer of rank ${buffer.owner.rank}`,
            {
              rank: buffer.owner.rank,
              help: 'Free windows, transfers and graphs first, and synchronize the streams that use it.',
            },
          ),
        );
      state.arena.release(buffer.address);
      state.allocatedBytes -= buffer.bytes;
      state.handles.remove(buffer);
      buffer.owner.objects.delete(buffer);
      return 0;
    },

    bufferAddress(handle) {
      const buffer = state.handles.get('buffer', handle, 'bufferAddress');
      return isError(buffer) ? 0n : BigInt(buffer.address);
    },

    mapBuffer(handle) {
      const buffer = state.owned('buffer', handle, 'mapBuffer');
      if (isError(buffer)) return failed(buffer);
      return succeeded({
        buffer: state.arena.space(buffer.address).buffer,
        byteOffset: offsetOf(buffer.address),
      });
    },

    memoryUsage() {
      for (const world of state.worlds) world.crew.sweep();
      return { allocatedBytes: state.allocatedBytes, reservedBytes: state.arena.reservedBytes };
    },

    availableMemoryOf(handle) {
      const rank = state.rank(handle, 'availableMemoryOf');
      return isError(rank) ? failed(rank) : succeeded(process.availableMemory());
    },

    async registerWindow(handle, bufferHandle) {
      const rank = state.rank(handle, 'registerWindow');
      if (isError(rank)) return failed(rank);
      const buffer = windowBuffer(state, rank, bufferHandle);
      const part: WindowPart = isError(buffer)
        ? { rank, buffer: undefined, error: buffer }
        : { rank, buffer, error: undefined };
      const value = takeDisagreement(rank, 'registerWindow') ? 'another call' : 'registerWindow';
      return collective<WindowPart, WindowHandle>(rank, {
        op: 'registerWindow',
        topic: 'registerWindow',
        agreed: { field: 'call', value },
        part,
        finish: (parts) => {
          if (parts.some(({ error }) => error !== undefined))
            return refuseAll(
              'registerWindow',
              parts.map(({ error }) => error),
            );
          const peers = parts.map(({ buffer: memory }) => BigInt(memory!.address));
          return parts.map(({ rank: owner, buffer: memory }) =>
            succeeded(openWindow(state, owner, memory!, peers)),
          );
        },
      });
    },

    freeWindow(handle) {
      const window = state.owned('window', handle, 'freeWindow');
      if (isError(window)) return state.refuse(window);
      const { rank, world } = window.owner;
      world.crew.sweep();
      const user = workOn(window.buffer);
      if (user !== undefined)
        return state.refuse(
          errorRecord(
            'ERR_BUSY',
            'freeWindow',
            `${user} still uses the buffer of this window of rank ${rank}`,
            {
              rank,
              help: 'Free the graphs that use it, and synchronize the streams that use it, first.',
            },
          ),
        );
      window.buffer.windows--;
      state.handles.remove(window);
      window.owner.objects.delete(window);
      return 0;
    },

    windowPeers(handle) {
      const window = state.owned('window', handle, 'windowPeers');
      if (isError(window)) return failed(window);
      // No kernel runs here that could read a table.
      return succeeded({ table: 0n, addresses: window.peers });
    },
  };
}

function openWindow(
  state: BackendState,
  owner: RankState,
  buffer: BufferState,
  peers: readonly bigint[],
): WindowHandle {
  const window: WindowState = { kind: 'window', handle: 0, owner, buffer, peers };
  buffer.windows++;
  owner.objects.add(window);
  return state.handles.add(window);
}

function windowBuffer(state: BackendState, rank: RankState, handle: number): BufferState | ErrorRecord {
  const buffer = state.owned('buffer', handle, 'registerWindow');
  if (isError(buffer)) return buffer;
  const wrong = foreign(buffer, rank, 'registerWindow');
  if (wrong !== undefined) return wrong;
  if (buffer.memory === 'symmetric') return buffer;
  return errorRecord(
    'ERR_INVALID_ARGUMENT',
    'registerWindow',
    `the buffer of rank ${rank.rank} is plain memory`,
    {
      rank: rank.rank,
      expected: 'symmetric',
      seen: 'plain',
      help: "Allocate it with kind 'symmetric'.",
    },
  );
}

function userOf(buffer: BufferState): string | undefined {
  if (buffer.windows > 0) return 'a window';
  if (buffer.transfers > 0) return 'a transfer';
  if (buffer.groups > 0) return 'a group, a handle or an open send';
  return workOn(buffer);
}

function workOn(buffer: BufferState): string | undefined {
  if (buffer.graphs > 0) return 'a graph';
  return isIdle(buffer.uses) ? undefined : 'queued work';
}

function outOfMemory(state: BackendState, rank: RankState, bytes: number): ErrorRecord {
  const { liveBytes, limit, reservedBytes } = state.arena;
  return errorRecord(
    'ERR_OUT_OF_MEMORY',
    'allocate',
    `rank ${rank.rank} asked for ${bytes} bytes; ${liveBytes} of at most ${limit} bytes are in use and ${reservedBytes} reserved`,
    { rank: rank.rank, expected: limit - liveBytes, seen: bytes },
  );
}
