// SPDX-License-Identifier: Apache-2.0
// `--path sendrecv`: how transfers on GPUs move bytes, for this run.

import type { TransferPathChoice } from '@nccl-ext/core';
import type { ArgDef } from 'citty';
import type { Arguments } from './arguments.js';

export const pathArgument: ArgDef = {
  type: 'string',
  valueHint: 'NAME',
  description:
    'How transfers on GPUs move bytes: auto (write where a peer can be reached, else send), mapped (write) or sendrecv (send); default auto',
};

/** Undefined: NCCL_EXT_TRANSFER_PATH says it. @throws ERR_INVALID_ARGUMENT for no path. */
export function readPath(args: Arguments): TransferPathChoice | undefined {
  return args.oneOf('path', ['auto', 'mapped', 'sendrecv']);
}
