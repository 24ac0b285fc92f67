// SPDX-License-Identifier: Apache-2.0
// The tensors that an operation of a handle gives, as shapes to allocate.

import type { EpLayout, EpPass, EpQuantization } from '@nccl-ext/core/contract';
import { requireObject } from '@nccl-ext/core/extend';
import { invalid, requireCount, requireNames } from '../config/require-values.js';
import { fieldMatrix } from '../fields/field-matrix.js';
import { isLowLatency } from '../fields/modes.js';
import { type ForwardedRows, shapesOf, type TensorShape } from '../fields/shapes-of.js';
import type { GroupCore } from '../group/group-core.js';
import { worstCaseRows } from '../memory/worst-case-rows.js';
import type { DispatchOutputsOf } from './call-options.js';
import { passOf, quantizationOf } from './check-options.js';

/** Rows are counted in 32 bits. */
const mostRows = 2 ** 31 - 1;

export interface ShapeOptions {
  /** N; default the budget, or the worst case on this rank. */
  readonly rows?: number | undefined;
  readonly pass?: EpPass | undefined;
  readonly quantization?: EpQuantization | undefined;
  /** Of ids and counts; default i32. */
  readonly index?: 'i32' | 'i64' | undefined;
  /** With quantization `forward`: what the rows are. */
  readonly forward?: ForwardedRows | undefined;
}

/** By the names of `out`; those of scales and of the backward pass are there when the call has them. */
export type OutputShapes<L extends EpLayout, O extends 'dispatch' | 'combine'> = O extends 'dispatch'
  ? { readonly [F in keyof DispatchOutputsOf[L] as F extends 'scales' ? never : F]-?: TensorShape } & {
      readonly scales?: TensorShape;
    }
  : { readonly tokens: TensorShape; readonly topkWeights?: TensorShape };

/** `batch` is B of the last route. */
export function outputShapes<L extends EpLayout, O extends 'dispatch' | 'combine'>(
  { settings, communicator }: GroupCore,
  layout: L,
  alignment: number,
  batch: number,
  operation: O,
  options: ShapeOptions,
): OutputShapes<L, O> {
  const { rank } = communicator;
  if (operation !== 'dispatch' && operation !== 'combine')
    throw invalid('operation', 'must be dispatch or combine', operation);
  requireObject('options', options);
  requireNames('the options of outputShapes', options, ['rows', 'pass', 'quantization', 'index', 'forward']);
  const { index = 'i32' } = options;
  if (index !== 'i32' && index !== 'i64') throw invalid('index', 'must be i32 or i64', index);
  if (options.rows !== undefined) requireCount('rows', options.rows, 0, mostRows);
  const pass = passOf({ rank, operation, layout }, options.pass);
  const quantization = quantizationOf({ rank, operation, layout, pass }, settings, options.quantization);
  const local = settings.map.placement[rank]!.length;
  const budget = isLowLatency(layout) ? 0 : settings.receiveBudget;
  const rows = options.rows ?? (budget || worstCaseRows(settings, layout, alignment, local));
  const shapes = shapesOf(settings, fieldMatrix[layout][operation][pass]!, {
    ...options,
    quantization,
    rank,
    tokens: batch,
    rows,
  });
  const outputs = Object.entries(shapes).flatMap(([field, shape]) =>
    field.startsWith('out.') ? [[field.slice('out.'.length), shape]] : [],
  );
  return Object.fromEntries(outputs) as OutputShapes<L, O>;
}
