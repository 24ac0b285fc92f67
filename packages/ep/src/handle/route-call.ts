// SPDX-License-Identifier: Apache-2.0
// A route as the caller writes it, checked and in the form of the contract.

import type { EpLayout, EpRouteCall } from '@nccl-ext/core/contract';
import { requireObject } from '@nccl-ext/core/extend';
import { callError } from '../fields/call-place.js';
import { checkFields } from '../fields/check-fields.js';
import { extentsOf } from '../fields/extents.js';
import { isLowLatency } from '../fields/modes.js';
import type { GroupCore } from '../group/group-core.js';
import type { IndexTensor, RouteOptions } from './call-options.js';
import { tensorsIn } from './check-options.js';
import { counterOf, rangeOf } from './ranges.js';

export function routeCall(
  core: GroupCore,
  layout: EpLayout,
  topkIdx: IndexTensor | undefined,
  options: RouteOptions<EpLayout>,
): EpRouteCall {
  requireObject('options', options);
  const { settings, communicator } = core;
  const { rank } = communicator;
  const place = { rank, operation: 'route', layout, pass: 'forward' } as const;
  const { stream: _, counts, ...rest } = tensorsIn(place, '', options);
  const extents = extentsOf(settings, rank, topkIdx === undefined ? 0 : undefined);
  const fields = checkFields(
    { place, settings, communicator, quantization: 'none', extents },
    { topkIdx, ...rest, ...(counts === undefined ? {} : tensorsIn(place, 'counts', counts)) },
  );
  const tokens = extents.get('B')!;
  if (tokens > settings.maxTokensPerRank) {
    throw callError(
      place,
      'topkIdx',
      `has ${tokens} tokens; maxTokensPerRank is ${settings.maxTokensPerRank}.`,
      {
        expected: settings.maxTokensPerRank,
        seen: tokens,
      },
    );
  }
  const byWeight = settings.overflow === 'drop-by-weight' && !isLowLatency(layout);
  if (byWeight && tokens > 0 && !fields.has('weights')) {
    throw callError(
      place,
      'weights',
      `is missing; drop-by-weight wants f32 [B=${tokens}, K=${settings.topK}], got none.`,
    );
  }
  return {
    tokens,
    topkIdx: counterOf(fields, 'topkIdx'),
    topkWeights: rangeOf(fields, 'weights'),
    expertCounts: counterOf(fields, 'counts.expertCounts'),
    expertOffsets: counterOf(fields, 'counts.expertOffsets'),
    sourceCounts: counterOf(fields, 'counts.sourceCounts'),
    total: counterOf(fields, 'counts.total'),
    demand: counterOf(fields, 'counts.demand'),
  };
}
