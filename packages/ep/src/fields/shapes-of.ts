// SPDX-License-Identifier: Apache-2.0
// The tensors that a call wants, as shapes to allocate.

import { type DType, NcclExtError } from '@nccl-ext/core';
import type { EpQuantization } from '@nccl-ext/core/contract';
import type { EpSettings } from '../config/ep-settings.js';
import { invalid, requireCount } from '../config/require-values.js';
import { extentsOf } from './extents.js';
import type { Extent, FieldRule } from './field-matrix.js';
import { quantizationRules } from './quantization-rules.js';

export interface TensorShape {
  readonly dtype: DType;
  readonly shape: readonly number[];
}

export interface ShapeRequest {
  readonly rank: number;
  /** B. */
  readonly tokens: number;
  /** N. */
  readonly rows: number;
  readonly quantization?: EpQuantization | undefined;
  /** Of ids and counts; default i32. */
  readonly index?: 'i32' | 'i64' | undefined;
  /** What `forward` forwards; without `scales` rows have none. */
  readonly forward?: ForwardedRows | undefined;
}

/** Rows that were quantised before. */
export interface ForwardedRows {
  readonly dtype: DType;
  readonly scales?: { readonly dtype: DType; readonly perRow: number } | undefined;
}

function requireForwarded(
  { dtype, scales }: ForwardedRows,
  rows: readonly DType[],
  scaleDTypes: readonly DType[],
): void {
  if (!rows.includes(dtype)) throw invalid('forward.dtype', `must be ${rows.join(' or ')}`, dtype);
  if (scales === undefined) return;
  if (!scaleDTypes.includes(scales.dtype))
    throw invalid('forward.scales.dtype', `must be ${scaleDTypes.join(' or ')}`, scales.dtype);
  requireCount('forward.scales.perRow', scales.perRow, 1);
}

/** Shapes by field; fields of scales are left out where the quantization has none. */
export function shapesOf(
  settings: EpSettings,
  rules: readonly FieldRule[],
  request: ShapeRequest,
): Record<string, TensorShape> {
  const { quantization = 'none', forward } = request;
  if (quantization === 'forward' && forward === undefined) {
    throw new NcclExtError(
      'ERR_INVALID_ARGUMENT',
      'forward is missing: shapes of forwarded rows need their dtype.',
      {
        field: 'forward',
        help: "Pass forward: { dtype: 'f8e4m3', scales: { dtype: 'f32', perRow: 56 } }.",
      },
    );
  }
  const { block, scales, tokens, scaleDTypes } = quantizationRules[quantization];
  if (quantization === 'forward') requireForwarded(forward!, tokens!, scaleDTypes);
  const extents = extentsOf(settings, request.rank, request.tokens);
  extents.set('N', request.rows);
  const perRow = block === undefined ? forward?.scales?.perRow : settings.hidden / block;
  if (perRow !== undefined && scales !== 'none') extents.set('S', perRow);
  const shapes: Record<string, TensorShape> = {};
  for (const rule of rules) {
    if (rule.presence === 'scales' && !extents.has('S')) continue;
    if (rule.field === 'scales' && scales === 'made') continue;
    const dtype = dtypeOf(settings, rule, request);
    const extent = (name: Extent): number =>
      name === 'H' && dtype === 'f4e2m1x2' ? settings.hidden / 2 : extents.get(name)!;
    shapes[rule.field] = { dtype, shape: rule.shape.map(extent) };
  }
  return shapes;
}

function dtypeOf(settings: EpSettings, { dtype }: FieldRule, request: ShapeRequest): DType {
  const { quantization = 'none', forward, index = 'i32' } = request;
  const rule = quantizationRules[quantization];
  const input = quantization === 'forward' ? forward!.dtype : settings.dtype;
  switch (dtype) {
    case 'payload':
      return settings.dtype;
    case 'tokens':
      return input;
    case 'rows':
      return rule.rows ?? input;
    case 'scale':
      return quantization === 'forward' ? forward!.scales!.dtype : rule.scaleDTypes[0]!;
    case 'f32':
      return 'f32';
    case 'index':
      return index;
  }
}
