// SPDX-License-Identifier: Apache-2.0
// The ways in which checkpoint files are refused: the file and the tensor first, then what is wrong.

import { NcclExtError } from '@nccl-ext/core';

/** An ERR_CHECKPOINT for contents that are wrong; it names the file and, if one is at fault, the tensor. */
export function checkpointError(
  file: string,
  tensor: string | undefined,
  problem: string,
  cause?: unknown,
): NcclExtError {
  const where = tensor === undefined ? file : `${file}: tensor ${JSON.stringify(tensor)}`;
  return new NcclExtError('ERR_CHECKPOINT', `${where}: ${problem}`, {
    help: 'Nothing was moved. Download or export the checkpoint again; its header does not describe its data.',
    field: tensor ?? file,
    cause,
  });
}

/** An ERR_CHECKPOINT for a path at which there is nothing to read. */
export function checkpointPathError(
  path: string,
  problem: string,
  help: string,
  cause?: unknown,
): NcclExtError {
  return new NcclExtError('ERR_CHECKPOINT', `${path}: ${problem}`, { help, field: path, cause });
}
