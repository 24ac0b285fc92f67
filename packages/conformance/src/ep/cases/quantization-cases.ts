// SPDX-License-Identifier: Apache-2.0
// Rows that were quantised before, rows that dispatch quantises, payloads that combine quantises.

import type { DType } from '@nccl-ext/core';
import { epCase, ragged, uniform } from './base.js';
import type { EpCase } from './ep-case.js';

const forwarded: readonly DType[] = ['f32', 'f16', 'bf16', 'f8e4m3', 'f8e5m2', 'f4e2m1x2'];
const scaleDTypes: readonly DType[] = ['f32', 'f16', 'bf16', 'f8e4m3', 'f8e5m2', 'u8'];
const routings = [uniform, ragged];

export const quantizationCases: readonly EpCase[] = [
  ...forwarded.map((dtype) =>
    epCase('ep-quantization', `${dtype} rows pass as they are`, {
      routings,
      quantization: 'forward',
      forward: { dtype },
      config: { hidden: 32 },
    }),
  ),
  ...scaleDTypes.map((dtype) =>
    epCase('ep-quantization', `${dtype} scales pass with f8e4m3 rows`, {
      routings,
      quantization: 'forward',
      // A row of scales has a multiple of 16 bytes only by chance.
      forward: { dtype: 'f8e4m3', scales: { dtype, perRow: 7 } },
      config: { hidden: 32 },
    }),
  ),
  epCase('ep-quantization', 'packed fp4 with a scale per 16', {
    routings,
    quantization: 'forward',
    forward: { dtype: 'f4e2m1x2', scales: { dtype: 'f8e4m3', perRow: 8 } },
    config: { hidden: 128 },
  }),
  epCase('ep-quantization', 'forwarded rows with drops and marks', {
    routings: [...routings, { ids: 'one-rank' }],
    handles: [{ layout: 'flat' }, { layout: 'packed', alignment: 4 }],
    steps: 6,
    quantization: 'forward',
    forward: { dtype: 'f8e4m3', scales: { dtype: 'f32', perRow: 4 } },
    config: { hidden: 128, receiveBudget: 9, overflow: 'drop-by-source', debugFill: 0xab },
  }),
  ...(['fp8', 'fp8-pow2', 'mxfp8'] as const).flatMap((quantization) =>
    (['f32', 'f16', 'bf16'] as const).map((dtype) =>
      epCase('ep-quantization', `${dtype} to ${quantization}`, {
        routings,
        steps: 8,
        quantization,
        values: 'edges',
        config: { hidden: 384, dtype, maxTokensPerRank: 3 },
      }),
    ),
  ),
  epCase('ep-quantization', 'ordinary numbers to fp8', {
    routings,
    steps: 8,
    quantization: 'fp8',
    config: { hidden: 256 },
  }),
  epCase('ep-quantization', 'mxfp8 of a row of 32', {
    quantization: 'mxfp8',
    config: { hidden: 32 },
    values: 'edges',
  }),
  epCase('ep-quantization', 'fp8 of rows longer than a tile', {
    quantization: 'fp8',
    config: { hidden: 7168, maxTokensPerRank: 2 },
  }),
  ...(['f32', 'f16', 'bf16'] as const).flatMap((dtype) =>
    (['usual', 'edges'] as const).map((values) =>
      epCase('ep-quantization', `combine of ${dtype} through fp8, ${values} values`, {
        routings,
        steps: 8,
        combineQuantization: 'fp8',
        values,
        config: { hidden: 256, dtype, maxTokensPerRank: 3, topK: 4 },
      }),
    ),
  ),
];
