// SPDX-License-Identifier: Apache-2.0
// All tensors of a call against the field matrix: what is missing, what does not belong, what does not fit.

import type { Communicator, DType } from '@nccl-ext/core';
import type { EpQuantization } from '@nccl-ext/core/contract';
import type { EpSettings } from '../config/ep-settings.js';
import type { EpTensor } from '../tensor/tensor.js';
import { type CallPlace, callError } from './call-place.js';
import { checkTensor } from './check-tensor.js';
import { type Extents, shapeText } from './extents.js';
import { type EpOperation, type FieldRule, fieldMatrix } from './field-matrix.js';
import { quantizationRules } from './quantization-rules.js';
import { rejectOverlap } from './reject-overlap.js';

/** Tensors of a call by field, as the caller passed them. */
export type PassedFields = Readonly<Record<string, unknown>>;

/** Those that are there, checked. */
export type CheckedFields = ReadonlyMap<string, EpTensor>;

export interface FieldCheck {
  readonly place: CallPlace & { readonly operation: EpOperation };
  readonly settings: EpSettings;
  readonly communicator: Communicator;
  readonly quantization: EpQuantization;
  /** B among them; N and S are set by the tensors. */
  readonly extents: Extents;
}

/**
 * The tensors of a call. Those with B rows may be absent when B is 0.
 *
 * @throws ERR_INVALID_ARGUMENT (missing, forbidden, dtype, shape, alignment), ERR_FOREIGN_OBJECT, ERR_DISPOSED, ERR_OUT_OF_BOUNDS, ERR_OVERLAP.
 */
export function checkFields(check: FieldCheck, passed: PassedFields): CheckedFields {
  const { place, extents } = check;
  const rules = rulesOf(check);
  for (const [field, value] of Object.entries(passed)) {
    if (value === undefined || rules.some((rule) => rule.field === field)) continue;
    const taken = rules.map((rule) => rule.field).join(', ');
    throw callError(place, field, `is not taken; the fields of this call are ${taken}.`);
  }
  const { block } = quantizationRules[check.quantization];
  if (block !== undefined) extents.set('S', check.settings.hidden / block);
  const checked = new Map<string, EpTensor>();
  for (const rule of rules) {
    const value = passed[rule.field];
    const dtypes = dtypesOf(check, rule, checked);
    if (value === undefined) {
      if (isNeeded(check, rule, passed)) throw missing(check, rule, dtypes);
      continue;
    }
    checkTensor(place, rule, value, dtypes, extents, check.communicator);
    checked.set(rule.field, value);
  }
  rejectOverlap(place, checked);
  return checked;
}

function rulesOf({ place, quantization }: FieldCheck): readonly FieldRule[] {
  const rules = fieldMatrix[place.layout][place.operation][place.pass] ?? [];
  const { scales } = quantizationRules[quantization];
  return rules.filter(({ presence, field }) => {
    if (presence !== 'scales') return true;
    return scales === 'forwarded' || (scales === 'made' && field.startsWith('out.'));
  });
}

function isNeeded({ extents, quantization }: FieldCheck, rule: FieldRule, passed: PassedFields): boolean {
  if (rule.presence === 'optional') return false;
  if (rule.shape[0] === 'B' && extents.get('B') === 0) return false;
  if (rule.presence === 'required') return true;
  if (quantizationRules[quantization].scales === 'made') return true;
  // Forwarded scales are on both sides or on none; with B = 0 the outputs alone tell.
  return passed.scales !== undefined || passed['out.scales'] !== undefined;
}

function missing({ place, extents }: FieldCheck, rule: FieldRule, dtypes: readonly DType[]): Error {
  const wanted = `${dtypes.join(' or ')} ${shapeText(rule.shape, extents)}`;
  return callError(place, rule.field, `is missing; wanted ${wanted}, got none.`, { expected: wanted });
}

function dtypesOf(
  { settings, quantization }: FieldCheck,
  { dtype, field }: FieldRule,
  checked: CheckedFields,
): readonly DType[] {
  const rule = quantizationRules[quantization];
  const inputs = rule.tokens ?? [settings.dtype];
  switch (dtype) {
    case 'payload':
      return [settings.dtype];
    case 'tokens':
      return inputs;
    case 'rows': {
      const tokens = checked.get('tokens');
      return rule.rows !== undefined ? [rule.rows] : tokens === undefined ? inputs : [tokens.dtype];
    }
    case 'scale': {
      const scales = field === 'scales' ? undefined : checked.get('scales');
      return scales === undefined ? rule.scaleDTypes : [scales.dtype];
    }
    case 'f32':
      return ['f32'];
    case 'index':
      return ['i32', 'i64'];
  }
}
