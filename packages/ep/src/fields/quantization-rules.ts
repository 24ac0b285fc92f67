// SPDX-License-Identifier: Apache-2.0
// How the tensors of a dispatch follow from its quantization: dtypes of rows and scales, and how many scales a row has.

import type { DType } from '@nccl-ext/core';
import type { EpQuantization } from '@nccl-ext/core/contract';

export interface QuantizationRule {
  /** Of input rows; undefined: the group's dtype. */
  readonly tokens?: readonly DType[];
  /** Of output rows; undefined: that of the input rows. */
  readonly rows?: DType;
  /** `none`: no scales. `made`: the outputs need them. `forwarded`: inputs and outputs have them, or neither. */
  readonly scales: 'none' | 'made' | 'forwarded';
  readonly scaleDTypes: readonly DType[];
  /** Elements of a row that share a scale; H is a multiple of it. */
  readonly block?: number;
}

export const quantizationRules: { readonly [Q in EpQuantization]: QuantizationRule } = {
  none: { scales: 'none', scaleDTypes: [] },
  forward: {
    tokens: ['f32', 'f16', 'bf16', 'f8e4m3', 'f8e5m2', 'f4e2m1x2'],
    scales: 'forwarded',
    scaleDTypes: ['f32', 'f16', 'bf16', 'f8e4m3', 'f8e5m2', 'u8'],
  },
  fp8: { rows: 'f8e4m3', scales: 'made', scaleDTypes: ['f32'], block: 128 },
  'fp8-pow2': { rows: 'f8e4m3', scales: 'made', scaleDTypes: ['f32'], block: 128 },
  mxfp8: { rows: 'f8e4m3', scales: 'made', scaleDTypes: ['u8'], block: 32 },
};
