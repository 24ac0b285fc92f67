// SPDX-License-Identifier: Apache-2.0
// Checked tensors in the form of the contract: a buffer and an offset, or absent.

import { absentRange, type EpCounter, type EpRange } from '@nccl-ext/core/contract';
import { bufferHandleOf } from '@nccl-ext/core/extend';
import type { CheckedFields } from '../fields/check-fields.js';

export function rangeOf(fields: CheckedFields, field: string): EpRange {
  const tensor = fields.get(field);
  if (tensor === undefined) return absentRange;
  return { buffer: bufferHandleOf(tensor.buffer), byteOffset: tensor.byteOffset };
}

export function counterOf(fields: CheckedFields, field: string): EpCounter {
  return { ...rangeOf(fields, field), entryBytes: fields.get(field)?.dtype === 'i64' ? 8 : 4 };
}
