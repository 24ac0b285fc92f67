// SPDX-License-Identifier: Apache-2.0
// One tensor of a call against its rule: kind, owner, dtype, shape, alignment and bounds.

import { type Communicator, DeviceBuffer, type DType, dtypeBytes, isDType } from '@nccl-ext/core';
import { describe } from '@nccl-ext/core/extend';
import { type EpTensor, tensorBytes } from '../tensor/tensor.js';
import { type CallPlace, callError } from './call-place.js';
import { type Extents, shapeText } from './extents.js';
import type { FieldRule } from './field-matrix.js';

/** Rows start at multiples of this. */
const rowAlignment = 16;

/** Checks `value`; extents that were free take what it has. */
export function checkTensor(
  place: CallPlace,
  rule: FieldRule,
  value: unknown,
  dtypes: readonly DType[],
  extents: Extents,
  communicator: Communicator,
): asserts value is EpTensor {
  const { field } = rule;
  requireTensor(place, field, value);
  if (!dtypes.includes(value.dtype) || !fits(rule, value, extents)) {
    const wanted = `${dtypes.join(' or ')} ${shapeText(rule.shape, extents)}`;
    const got = `${value.dtype} [${value.shape.join(', ')}]`;
    throw callError(place, field, `must be ${wanted}, got ${got}.`, { expected: wanted, seen: got });
  }
  requireRange(place, rule, value, communicator);
}

function requireTensor(place: CallPlace, field: string, value: unknown): asserts value is EpTensor {
  const { buffer, dtype, shape, byteOffset } = (value ?? {}) as Partial<EpTensor>;
  const isTensor =
    buffer instanceof DeviceBuffer &&
    isDType(dtype) &&
    Array.isArray(shape) &&
    shape.every((extent) => Number.isSafeInteger(extent) && extent >= 0) &&
    Number.isSafeInteger(byteOffset);
  if (isTensor) return;
  throw callError(place, field, `must be a tensor, got ${describe(value)}.`, {
    help: 'Make one with tensor(buffer, dtype, shape) or allocateTensor(comm, dtype, shape).',
  });
}

function fits(rule: FieldRule, { dtype, shape }: EpTensor, extents: Extents): boolean {
  if (shape.length !== rule.shape.length) return false;
  const free: (readonly [(typeof rule.shape)[number], number])[] = [];
  for (const [axis, name] of rule.shape.entries()) {
    const seen = shape[axis]!;
    const value = extents.get(name);
    // A byte of packed f4 has two values of the row.
    const wanted = name === 'H' && dtype === 'f4e2m1x2' ? value! / 2 : value;
    if (wanted === undefined) free.push([name, seen]);
    else if (wanted !== seen) return false;
  }
  for (const [name, seen] of free) extents.set(name, seen);
  return true;
}

function requireRange(place: CallPlace, rule: FieldRule, tensor: EpTensor, communicator: Communicator): void {
  const { field } = rule;
  const { buffer, byteOffset, dtype } = tensor;
  if (buffer.communicator !== communicator) {
    throw callError(
      place,
      field,
      `is memory of rank ${buffer.communicator.rank} or of another communicator.`,
      {
        code: 'ERR_FOREIGN_OBJECT',
        help: `Allocate it with communicator.allocate of rank ${communicator.rank}.`,
      },
    );
  }
  if (buffer.disposed) {
    throw callError(place, field, 'is memory that was disposed.', {
      code: 'ERR_DISPOSED',
      help: 'Dispose a buffer after its last use.',
    });
  }
  buffer.assertUsable();
  const isRows = rule.shape.at(-1) === 'H';
  const rowBytes = isRows ? tensor.shape.at(-1)! * dtypeBytes(dtype) : rowAlignment;
  if (rowBytes % rowAlignment !== 0) {
    throw callError(
      place,
      field,
      `has rows of ${rowBytes} bytes; they must be a multiple of ${rowAlignment}.`,
      {
        expected: rowAlignment,
        seen: rowBytes,
      },
    );
  }
  const alignment = isRows ? rowAlignment : dtypeBytes(dtype);
  if (byteOffset < 0 || byteOffset % alignment !== 0) {
    throw callError(
      place,
      field,
      `must start at a multiple of ${alignment} bytes, not at byte ${byteOffset}.`,
      {
        expected: alignment,
        seen: byteOffset,
      },
    );
  }
  const end = byteOffset + tensorBytes(tensor);
  if (end > buffer.bytes) {
    throw callError(place, field, `needs bytes ${byteOffset} to ${end}; its buffer has ${buffer.bytes}.`, {
      code: 'ERR_OUT_OF_BOUNDS',
      expected: end,
      seen: buffer.bytes,
    });
  }
}
