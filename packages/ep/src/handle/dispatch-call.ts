// SPDX-License-Identifier: Apache-2.0
// A dispatch as the caller writes it, checked and in the form of the contract.

import { dtypeBytes } from '@nccl-ext/core';
import type { EpDispatchCall, EpLayout } from '@nccl-ext/core/contract';
import { requireObject } from '@nccl-ext/core/extend';
import { type CallPlace, callError } from '../fields/call-place.js';
import { type CheckedFields, checkFields } from '../fields/check-fields.js';
import { extentsOf } from '../fields/extents.js';
import { isLowLatency } from '../fields/modes.js';
import type { GroupCore } from '../group/group-core.js';
import type { EpTensor } from '../tensor/tensor.js';
import type { DispatchOptions } from './call-options.js';
import { flagOf, idsLocalOf, passOf, quantizationOf, sendOnlyOf, tensorsIn } from './check-options.js';
import { counterOf, rangeOf } from './ranges.js';

/** `batch` is B of the route. */
export function dispatchCall(
  core: GroupCore,
  layout: EpLayout,
  batch: number,
  tokens: EpTensor | undefined,
  options: DispatchOptions<EpLayout>,
): EpDispatchCall {
  requireObject('options', options);
  const { settings, communicator } = core;
  const { rank } = communicator;
  const operation = 'dispatch';
  const pass = passOf({ rank, operation, layout }, options.pass);
  const place = { rank, operation, layout, pass } as const;
  const given = tensorsIn(place, '', options);
  const quantization = quantizationOf(place, settings, given.quantization);
  const extents = extentsOf(settings, rank, batch);
  const fields = checkFields(
    { place, settings, communicator, quantization, extents },
    { tokens, weights: given.weights, scales: given.scales, ...tensorsIn(place, 'out', given.out) },
  );
  const out = fields.get('out.tokens')!;
  const input = fields.get('tokens');
  requireBudget(place, out, settings.receiveBudget);
  return {
    pass,
    quantization,
    rowBytes: rowBytes(input ?? { ...out, dtype: inputDType(fields, settings.dtype, quantization) }),
    outRowBytes: rowBytes(out),
    scaleBytes: rowBytes(fields.get('out.scales')),
    tokens: rangeOf(fields, 'tokens'),
    topkWeights: rangeOf(fields, 'weights'),
    scales: rangeOf(fields, 'scales'),
    outTokens: rangeOf(fields, 'out.tokens'),
    outRows: out.shape.slice(0, -1).reduce((product, extent) => product * extent, 1),
    outScales: rangeOf(fields, 'out.scales'),
    outWeights: rangeOf(fields, 'out.topkWeights'),
    outTopkIdx: counterOf(fields, 'out.topkIdx'),
    idsLocal: idsLocalOf(place, given.ids),
    expertCounts: counterOf(fields, 'out.expertCounts'),
    sourceCounts: counterOf(fields, 'out.sourceCounts'),
    renormalize: flagOf(place, 'renormalize', given.renormalize, pass === 'forward', 'the forward pass'),
    sendOnly: sendOnlyOf(place, given.sendOnly),
  };
}

/** Without input rows (B is 0) the others tell what they would be. */
function inputDType(
  fields: CheckedFields,
  payload: EpTensor['dtype'],
  quantization: string,
): EpTensor['dtype'] {
  return quantization === 'forward' ? fields.get('out.tokens')!.dtype : payload;
}

function rowBytes(tensor: Pick<EpTensor, 'dtype' | 'shape'> | undefined): number {
  return tensor === undefined ? 0 : tensor.shape.at(-1)! * dtypeBytes(tensor.dtype);
}

function requireBudget(place: CallPlace, out: EpTensor, budget: number): void {
  if (isLowLatency(place.layout) || out.shape[0]! >= budget) return;
  throw callError(
    place,
    'out.tokens',
    `must have at least receiveBudget = ${budget} rows, got ${out.shape[0]}.`,
    {
      expected: budget,
      seen: out.shape[0],
    },
  );
}
