// SPDX-License-Identifier: Apache-2.0
// A cast changes floats at the destination, and refuses what has no meaning in another dtype.

import type { DType } from '@nccl-ext/core';
import { describe, expect, it } from 'vitest';
import { refusal } from '../refusal.test-util.js';
import { refit, rulesOf, tensor } from './small-refits.test-util.js';

describe('casts', () => {
  const rules = rulesOf({
    rules: [
      { match: 'bias', cut: 'replicated', keepDType: true },
      { match: '*', cut: 'replicated' },
    ],
  });
  const cast = (parameters: Record<string, unknown>, to: DType) =>
    refit(parameters, rules, { cast: to }).tensors.map(({ name, source, destination }) => [
      name,
      source[0]!.pattern.dtype,
      destination[0]!.pattern.dtype,
    ]);

  it('change the dtype of floats at the destination', () => {
    expect(
      cast({ w: tensor(2), bias: { shape: [2], dtype: 'F32' }, ids: { shape: [2], dtype: 'I64' } }, 'f16'),
    ).toEqual([
      ['w', 'bf16', 'f16'],
      ['bias', 'f32', 'f32'],
      ['ids', 'i64', 'i64'],
    ]);
    expect(cast({ w: { shape: [2], dtype: 'F8_E4M3' } }, 'bf16')).toEqual([['w', 'f8e4m3', 'bf16']]);
  });

  it('are refused for block-quantised weights, their scales and packed floats', () => {
    const quantised = {
      'w.weight': { shape: [4, 4], dtype: 'F8_E4M3' },
      'w.weight_scale_inv': { shape: [2, 2], dtype: 'F32' },
    };
    for (const order of [Object.entries(quantised), Object.entries(quantised).reverse()]) {
      const error = refusal(() => cast(Object.fromEntries(order), 'bf16'));
      expect(error.code).toBe('ERR_CAST');
      expect(error.message).toMatch(/"w\.weight.*cannot be cast to bf16: it is quantised in blocks/);
    }
    expect(refusal(() => cast({ w: { shape: [4], dtype: 'F4' } }, 'bf16')).message).toMatch(
      /from f4e2m1x2 to bf16/,
    );
    expect(refusal(() => cast({ w: tensor(4) }, 'i8')).message).toMatch(/from bf16 to i8/);
  });
});
