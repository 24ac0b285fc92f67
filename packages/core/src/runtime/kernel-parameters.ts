// SPDX-License-Identifier: Apache-2.0
// Packs the parameters of a launch as C lays out arguments: in order, each aligned to its size. A wrong one is named by its place.

import type { BufferHandle, KernelLaunch } from '../contract/index.js';
import { NcclExtError } from '../errors/nccl-ext-error.js';
import { requireArray } from '../errors/require-kind.js';
import { describe } from '../mesh/require-integer.js';
import type { BufferRange } from './buffer-range.js';
import type { Communicator } from './communicator.js';
import { bufferKind, DeviceBuffer } from './device-buffer.js';
import { type EncodedValue, KernelValue, param, pointer } from './kernel-values.js';
import { requireOwn } from './require-own.js';
import { Window, windowKind } from './window.js';

/**
 * What a kernel takes: a buffer or a place in one (its address), a window (the address of its table of peers, as
 * {@link Window.peers} has it), or a typed value.
 */
export type KernelParameter = DeviceBuffer | BufferRange | Window | KernelValue;

/** The parameters of a launch, as backends take them. */
type Packed = Pick<KernelLaunch, 'parameters' | 'offsets' | 'guardOffset' | 'buffers'>;

/** The most that CUDA takes, on GPUs since sm_70. */
const maxBytes = 32_764;

/** `owner` is the rank that launches. */
export function packParameters(parameters: readonly KernelParameter[], owner: Communicator): Packed {
  requireArray('parameters', parameters);
  const buffers = new Set<BufferHandle>();
  const fields = parameters.map((parameter, index) =>
    encode(parameter, `parameters[${index}]`, owner, buffers),
  );
  const offsets = new Int32Array(fields.length);
  let end = 0;
  for (const [index, { bytes, alignment }] of fields.entries()) {
    offsets[index] = Math.ceil(end / alignment) * alignment;
    end = offsets[index] + bytes;
    if (end > maxBytes) throw tooLong(index, end);
  }
  const packed = new Uint8Array(end);
  const view = new DataView(packed.buffer);
  for (const [index, field] of fields.entries()) field.write(view, offsets[index]!);
  return {
    parameters: packed,
    offsets,
    guardOffset: guardOffset(parameters, offsets),
    buffers: [...buffers],
  };
}

function encode(
  parameter: KernelParameter,
  field: string,
  owner: Communicator,
  buffers: Set<BufferHandle>,
): EncodedValue {
  if (parameter instanceof KernelValue) return parameter.encode(field);
  if (parameter instanceof Window) {
    const window = requireOwn(parameter, field, windowKind, owner);
    const { table } = window.peers;
    buffers.add(window.buffer.handle);
    return pointer(table);
  }
  const isRange = !(parameter instanceof DeviceBuffer) && typeof parameter === 'object' && parameter !== null;
  if (!isRange && !(parameter instanceof DeviceBuffer)) throw wrongKind(field, parameter);
  if (isRange && !('buffer' in parameter)) throw wrongKind(field, parameter);
  const buffer = isRange
    ? requireOwn(parameter.buffer, `${field}.buffer`, bufferKind, owner)
    : requireOwn(parameter, field, bufferKind, owner);
  const byteOffset = isRange ? (parameter.byteOffset ?? 0) : 0;
  if (!Number.isSafeInteger(byteOffset) || byteOffset < 0 || byteOffset > buffer.bytes) {
    throw new NcclExtError(
      Number.isSafeInteger(byteOffset) ? 'ERR_OUT_OF_BOUNDS' : 'ERR_INVALID_ARGUMENT',
      `${field}.byteOffset must be an integer from 0 to ${buffer.bytes}, got ${describe(byteOffset)}.`,
      { field: `${field}.byteOffset`, expected: buffer.bytes, seen: byteOffset },
    );
  }
  buffers.add(buffer.handle);
  return pointer(buffer.address + BigInt(byteOffset));
}

function guardOffset(parameters: readonly KernelParameter[], offsets: Int32Array): number {
  const first = parameters.indexOf(param.guard);
  if (first < 0) return -1;
  const second = parameters.indexOf(param.guard, first + 1);
  if (second < 0) return offsets[first]!;
  throw new NcclExtError(
    'ERR_INVALID_ARGUMENT',
    `parameters[${second}] is a second guard; a kernel takes at most one.`,
    { field: `parameters[${second}]`, help: `Pass the one of parameters[${first}] on inside the kernel.` },
  );
}

function wrongKind(field: string, seen: unknown): NcclExtError {
  return new NcclExtError(
    'ERR_INVALID_ARGUMENT',
    `${field} must be a buffer, a range of one, a window or a typed value, got ${describe(seen)}.`,
    { field, seen, help: 'Give numbers a type: param.u32(n), param.f32(x), param.i64(n), ...' },
  );
}

function tooLong(index: number, bytes: number): NcclExtError {
  const field = `parameters[${index}]`;
  return new NcclExtError(
    'ERR_INVALID_ARGUMENT',
    `${field} ends at byte ${bytes}; the parameters of a kernel have at most ${maxBytes} bytes.`,
    { field, expected: maxBytes, seen: bytes, help: 'Put large structs into a buffer and pass its address.' },
  );
}
