// SPDX-License-Identifier: Apache-2.0
// Outputs of a call share bytes with nothing else of it: peers read inputs and write outputs at times nobody knows.

import { type EpTensor, tensorBytes } from '../tensor/tensor.js';
import { type CallPlace, callError } from './call-place.js';
import type { CheckedFields } from './check-fields.js';

export function rejectOverlap(place: CallPlace, fields: CheckedFields): void {
  const all = [...fields];
  for (const [index, [field, tensor]] of all.entries()) {
    for (const [other, before] of all.slice(0, index)) {
      if (!isOutput(field) && !isOutput(other)) continue;
      if (!overlap(tensor, before)) continue;
      throw callError(place, field, `shares bytes with ${other}; give every output memory of its own.`, {
        code: 'ERR_OVERLAP',
      });
    }
  }
}

function isOutput(field: string): boolean {
  return field.startsWith('out.') || field.startsWith('counts.');
}

function overlap(a: EpTensor, b: EpTensor): boolean {
  if (a.buffer !== b.buffer) return false;
  const [endOfA, endOfB] = [a.byteOffset + tensorBytes(a), b.byteOffset + tensorBytes(b)];
  // Empty tensors share nothing, wherever they are.
  return Math.max(a.byteOffset, b.byteOffset) < Math.min(endOfA, endOfB);
}
