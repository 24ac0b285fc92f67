// SPDX-License-Identifier: Apache-2.0
// The options of a call that are no tensors: names, pass, quantization and flags.

import { type EpPass, type EpQuantization, epPasses, epQuantizations } from '@nccl-ext/core/contract';
import { describe, nearestName } from '@nccl-ext/core/extend';
import type { EpSettings } from '../config/ep-settings.js';
import { type CallPlace, callError } from '../fields/call-place.js';
import { type EpOperation, fieldMatrix } from '../fields/field-matrix.js';
import { isLowLatency } from '../fields/modes.js';
import { quantizationRules } from '../fields/quantization-rules.js';

/** Names that an operation may have in its options and in each group of tensors there, over all layouts. */
const names: { readonly [O in EpOperation]: Readonly<Record<string, readonly string[]>> } = {
  route: {
    '': ['stream', 'weights', 'counts'],
    counts: ['expertCounts', 'expertOffsets', 'sourceCounts', 'total', 'demand'],
  },
  dispatch: {
    '': ['stream', 'weights', 'scales', 'out', 'pass', 'quantization', 'renormalize', 'ids', 'sendOnly'],
    out: ['tokens', 'scales', 'topkWeights', 'topkIdx', 'expertCounts', 'sourceCounts'],
  },
  combine: {
    '': ['stream', 'weights', 'out', 'pass', 'quantization', 'sendOnly'],
    out: ['tokens', 'topkWeights'],
  },
};

/** The tensors of `values`, named as the field matrix does; `group` is where they are, as in `out`. */
export function tensorsIn(
  place: CallPlace & { readonly operation: EpOperation },
  group: string,
  values: unknown,
): Record<string, unknown> {
  const known = names[place.operation][group]!;
  const prefix = group === '' ? '' : `${group}.`;
  if (typeof values !== 'object' || values === null)
    throw callError(place, group || 'options', `must be an object, got ${describe(values)}.`);
  const entries = Object.entries(values);
  for (const [name] of entries) {
    if (known.includes(name)) continue;
    const near = nearestName(name, known);
    const hint = near === undefined ? `there are ${known.join(', ')}` : `did you mean ${near}?`;
    throw callError(place, `${prefix}${name}`, `is unknown; ${hint}`);
  }
  return Object.fromEntries(entries.map(([name, value]) => [`${prefix}${name}`, value]));
}

export function passOf(
  place: Omit<CallPlace, 'pass'> & { readonly operation: EpOperation },
  pass: unknown,
): EpPass {
  const value = (pass ?? 'forward') as EpPass;
  const wrong = { ...place, pass: 'forward' as const };
  if (!epPasses.includes(value))
    throw callError(wrong, 'pass', `must be forward or backward, got ${describe(pass)}.`, { seen: pass });
  if (fieldMatrix[place.layout][place.operation][value] !== undefined) return value;
  throw callError({ ...place, pass: value }, 'pass', 'must be forward.', {
    seen: value,
    help: 'Only flat and packed handles have a backward pass.',
  });
}

export function quantizationOf(
  place: CallPlace & { readonly operation: EpOperation },
  { hidden, reduction }: EpSettings,
  quantization: unknown,
): EpQuantization {
  const value = (quantization ?? 'none') as EpQuantization;
  const field = 'quantization';
  const allowed: readonly EpQuantization[] =
    place.pass === 'backward' ? ['none'] : place.operation === 'combine' ? ['none', 'fp8'] : epQuantizations;
  if (!allowed.includes(value)) {
    throw callError(place, field, `must be ${allowed.join(' or ')}, got ${describe(quantization)}.`, {
      expected: allowed,
      seen: quantization,
    });
  }
  if (place.operation === 'combine' && value === 'fp8' && reduction === 'token')
    throw callError(place, field, 'must be none: a reduction by token rounds once, in the end.', {
      seen: value,
    });
  const { block } = quantizationRules[value];
  if (block !== undefined && hidden % block !== 0) {
    throw callError(place, field, `${value} needs hidden to be a multiple of ${block}, not ${hidden}.`, {
      expected: block,
      seen: hidden,
    });
  }
  return value;
}

/** A boolean option; `when` says whether the call has it. */
export function flagOf(
  place: CallPlace,
  field: string,
  value: unknown,
  when: boolean,
  only: string,
): boolean {
  if (value === undefined || (value === false && !when)) return false;
  if (typeof value !== 'boolean')
    throw callError(place, field, `must be true or false, got ${describe(value)}.`, { seen: value });
  if (!when) throw callError(place, field, `is for ${only} only.`, { seen: value });
  return value;
}

export function sendOnlyOf(place: CallPlace, value: unknown): boolean {
  return flagOf(place, 'sendOnly', value, isLowLatency(place.layout), 'low-latency layouts');
}

/** Whether ids count within the rank. */
export function idsLocalOf(place: CallPlace, value: unknown): boolean {
  if (value === undefined) return true;
  const has = (place.layout === 'flat' || place.layout === 'rank-major') && place.pass === 'forward';
  if (!has) throw callError(place, 'ids', 'is not taken: this call gives no top-k ids.', { seen: value });
  if (value === 'local' || value === 'global') return value === 'local';
  throw callError(place, 'ids', `must be local or global, got ${describe(value)}.`, { seen: value });
}
