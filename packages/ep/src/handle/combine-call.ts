// SPDX-License-Identifier: Apache-2.0
// A combine as the caller writes it, checked and in the form of the contract.

import type { EpCombineCall, EpLayout } from '@nccl-ext/core/contract';
import { requireObject } from '@nccl-ext/core/extend';
import { checkFields } from '../fields/check-fields.js';
import { extentsOf } from '../fields/extents.js';
import type { GroupCore } from '../group/group-core.js';
import type { EpTensor } from '../tensor/tensor.js';
import type { CombineOptions } from './call-options.js';
import { passOf, quantizationOf, sendOnlyOf, tensorsIn } from './check-options.js';
import { rangeOf } from './ranges.js';

/** `batch` is B of the route. */
export function combineCall(
  core: GroupCore,
  layout: EpLayout,
  batch: number,
  rows: EpTensor,
  options: CombineOptions<EpLayout>,
): EpCombineCall {
  requireObject('options', options);
  const { settings, communicator } = core;
  const { rank } = communicator;
  const operation = 'combine';
  const pass = passOf({ rank, operation, layout }, options.pass);
  const place = { rank, operation, layout, pass } as const;
  const given = tensorsIn(place, '', options);
  const quantization = quantizationOf(place, settings, given.quantization) as 'none' | 'fp8';
  // Rows stay in the group's dtype: the quantization of a combine is that of what passes between ranks.
  const fields = checkFields(
    { place, settings, communicator, quantization: 'none', extents: extentsOf(settings, rank, batch) },
    { rows, weights: given.weights, ...tensorsIn(place, 'out', given.out) },
  );
  return {
    pass,
    quantization,
    tokens: rangeOf(fields, 'rows'),
    rows: fields
      .get('rows')!
      .shape.slice(0, -1)
      .reduce((product, extent) => product * extent, 1),
    topkWeights: rangeOf(fields, 'weights'),
    outTokens: rangeOf(fields, 'out.tokens'),
    outWeights: rangeOf(fields, 'out.topkWeights'),
    sendOnly: sendOnlyOf(place, given.sendOnly),
  };
}
