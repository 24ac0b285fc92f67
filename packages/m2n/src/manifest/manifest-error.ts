// SPDX-License-Identifier: Apache-2.0
// The ways in which manifests are refused: the rank, the tensor and the field first, then what is wrong.

import { type ErrorCode, type ErrorDetails, NcclExtError } from '@nccl-ext/core';

/** Where in a manifest something is. */
export interface ManifestPlace {
  readonly rank: number;
  readonly tensor?: string;
  /** Such as `ranks[0].tensors[3].pieces[1].local`. */
  readonly field: string;
}

export function manifestError(message: string, details: ErrorDetails = {}): NcclExtError {
  return new NcclExtError('ERR_MANIFEST', message, details);
}

/** An error at a place of a manifest. */
export function errorAt(
  code: ErrorCode,
  place: ManifestPlace,
  problem: string,
  details: ErrorDetails = {},
): NcclExtError {
  const { rank, tensor, field } = place;
  const where = tensor === undefined ? `rank ${rank}` : `rank ${rank}, tensor ${JSON.stringify(tensor)}`;
  return new NcclExtError(code, `${where} (${field}): ${problem}`, { field, rank, ...details });
}
