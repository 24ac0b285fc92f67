// SPDX-License-Identifier: Apache-2.0
// Where a call is wrong, in words: every refusal says operation, layout, mode, pass and field.

import { type ErrorCode, NcclExtError } from '@nccl-ext/core';
import type { EpLayout, EpPass } from '@nccl-ext/core/contract';
import { isLowLatency } from './modes.js';

export interface CallPlace {
  readonly rank: number;
  readonly operation: string;
  readonly layout: EpLayout;
  readonly pass: EpPass;
}

/** An error of a call; `rest` goes on after the place and the field, as in `must be f32 [4, 2], got none.` */
export function callError(
  place: CallPlace,
  field: string,
  rest: string,
  details: {
    readonly code?: ErrorCode;
    readonly expected?: unknown;
    readonly seen?: unknown;
    readonly help?: string;
  } = {},
): NcclExtError {
  const { code = 'ERR_INVALID_ARGUMENT', ...more } = details;
  return new NcclExtError(code, `${placeText(place)}: ${field} ${rest}`, {
    rank: place.rank,
    op: place.operation,
    field,
    ...more,
  });
}

/** As in `dispatch, flat (high throughput), backward`. */
function placeText({ operation, layout, pass }: CallPlace): string {
  return `${operation}, ${layout} (${isLowLatency(layout) ? 'low latency' : 'high throughput'}), ${pass}`;
}
