// SPDX-License-Identifier: Apache-2.0
// What ranks must agree on: one field per option, so that a difference names the option.

import type { AgreedFields } from '@nccl-ext/core';
import type { EpSettings } from './ep-settings.js';

export function agreedFields(settings: EpSettings): AgreedFields {
  const { map, receiveBudget, debugFill, ranks: _, ...options } = settings;
  return {
    experts: map.experts,
    placement: JSON.stringify(map.placement),
    replicaRule: map.replicaRule,
    ...options,
    receiveBudget: receiveBudget === 0 ? 'eager' : receiveBudget,
    debugFill: debugFill === -1 ? false : debugFill,
  };
}

/** The same as text with the names in order, for backends. */
export function canonicalAgreed(settings: EpSettings): string {
  const fields = Object.entries(agreedFields(settings)).sort(([a], [b]) => (a < b ? -1 : 1));
  return JSON.stringify(Object.fromEntries(fields));
}
