// SPDX-License-Identifier: Apache-2.0
// `--dtype BF16`: the dtype of rows of expert parallelism, also as safetensors writes it.

import type { EpDType } from '@nccl-ext/ep';
import type { ArgDef } from 'citty';
import { type Arguments, wrongValue } from './arguments.js';

const dtypes: readonly EpDType[] = ['bf16', 'f16', 'f32'];

export const dtypeArgument: ArgDef = {
  type: 'string',
  valueHint: 'DTYPE',
  description: 'bf16 (the default), f16 or f32',
};

/** @throws ERR_INVALID_ARGUMENT for another dtype. */
export function readDType(args: Arguments): EpDType | undefined {
  const text = args.text('dtype');
  const dtype = dtypes.find((candidate) => candidate === text?.toLowerCase());
  if (text === undefined || dtype !== undefined) return dtype;
  throw wrongValue('dtype', text, `one of ${dtypes.join(', ')}`);
}
