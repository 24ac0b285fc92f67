// SPDX-License-Identifier: Apache-2.0
// The memory of a group or a handle, from the caller or from the device, with what gives it back.

import { type BufferRange, type Communicator, DeviceBuffer, NcclExtError } from '@nccl-ext/core';
import { type EpRange, epAlignment } from '@nccl-ext/core/contract';
import { backendOf, bufferHandleOf, check, describe, rankHandleOf, unwrap } from '@nccl-ext/core/extend';
import { requireNames } from '../config/require-values.js';
import type { EpMemorySource, EpPurpose } from './memory-source.js';

export interface ClaimedMemory {
  readonly range: EpRange;
  readonly bytes: number;
  readonly owner: 'caller' | 'group';
  release(): void;
}

/** @throws ERR_OUT_OF_MEMORY; for the caller's memory ERR_INVALID_ARGUMENT, ERR_FOREIGN_OBJECT, ERR_DISPOSED, ERR_OUT_OF_BOUNDS. */
export function claimMemory(
  communicator: Communicator,
  source: EpMemorySource | undefined,
  purpose: EpPurpose,
  bytes: number,
): ClaimedMemory {
  const given = source === undefined ? undefined : ask(source, purpose, bytes);
  if (given === undefined) return allocate(communicator, bytes);
  const release = (): void => {
    if (source !== undefined && 'free' in source) source.free?.(given, purpose);
  };
  try {
    return { range: rangeOf(communicator, given, purpose, bytes), bytes, owner: 'caller', release };
  } catch (error) {
    release();
    throw error;
  }
}

function ask(
  source: EpMemorySource,
  purpose: EpPurpose,
  bytes: number,
): DeviceBuffer | BufferRange | undefined {
  if (typeof source !== 'object' || source === null)
    throw wrong('memory', `must be an object, got ${describe(source)}.`);
  if ('allocate' in source) {
    if (typeof source.allocate !== 'function') throw wrong('memory.allocate', 'must be a function.');
    return source.allocate(bytes, purpose);
  }
  requireNames('memory', source, ['group', 'handle']);
  if (purpose === 'group') return source.group;
  if (source.handle !== undefined && typeof source.handle !== 'function')
    throw wrong('memory.handle', 'must be a function.');
  return source.handle?.(bytes);
}

/** Not a DeviceBuffer: those are disposed with the communicator, before the group that uses them. */
function allocate(communicator: Communicator, bytes: number): ClaimedMemory {
  const { runtime } = backendOf(communicator);
  const buffer = unwrap(runtime.allocate(rankHandleOf(communicator), bytes, 'symmetric'));
  return {
    range: { buffer, byteOffset: 0 },
    bytes,
    owner: 'group',
    release: () => check(runtime, runtime.freeBuffer(buffer)),
  };
}

function rangeOf(
  communicator: Communicator,
  given: DeviceBuffer | BufferRange,
  purpose: EpPurpose,
  bytes: number,
): EpRange {
  const field = `memory of the ${purpose}`;
  const { buffer, byteOffset = 0 } = given instanceof DeviceBuffer ? { buffer: given } : (given ?? {});
  if (!(buffer instanceof DeviceBuffer))
    throw wrong(field, `must be a buffer or { buffer, byteOffset }, got ${describe(given)}.`);
  if (buffer.communicator !== communicator) {
    throw new NcclExtError(
      'ERR_FOREIGN_OBJECT',
      `${field} is a buffer of rank ${buffer.communicator.rank} or of another communicator.`,
      { rank: communicator.rank, field },
    );
  }
  const handle = bufferHandleOf(buffer);
  if (!Number.isSafeInteger(byteOffset) || byteOffset < 0 || byteOffset % epAlignment !== 0)
    throw wrong(field, `must start at a multiple of ${epAlignment} bytes, not at ${describe(byteOffset)}.`);
  if (byteOffset + bytes > buffer.bytes) {
    throw new NcclExtError(
      'ERR_OUT_OF_BOUNDS',
      `${field} needs bytes ${byteOffset} to ${byteOffset + bytes}; the buffer has ${buffer.bytes}.`,
      {
        rank: communicator.rank,
        field,
        expected: byteOffset + bytes,
        seen: buffer.bytes,
        help: 'epMemory(config, ranks) and layoutOf(config, ranks) say the sizes.',
      },
    );
  }
  return { buffer: handle, byteOffset };
}

function wrong(field: string, rest: string): NcclExtError {
  return new NcclExtError('ERR_INVALID_ARGUMENT', `${field} ${rest}`, { field });
}
