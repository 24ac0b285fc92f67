// SPDX-License-Identifier: Apache-2.0
// Which share of a GPU each rank asks for: one number for all ranks, or a list with an entry per rank.

import { NcclExtError } from '../errors/nccl-ext-error.js';
import { optionTable } from '../options/option-table.js';

/**
 * The option `sms` by rank; 0 leaves a rank the default share.
 *
 * @throws ERR_INVALID_ARGUMENT for a list of another length than `ranks`.
 */
export function smsOfRanks(sms: number | readonly number[], ranks: number): readonly number[] {
  if (typeof sms === 'number') return Array.from({ length: ranks }, () => sms);
  if (sms.length === ranks) return sms;
  throw new NcclExtError(
    'ERR_INVALID_ARGUMENT',
    `sms (${optionTable.sms.variable}) must hold one number of SMs per rank (${ranks}), not [${sms.join(', ')}].`,
    {
      field: 'sms',
      expected: ranks,
      seen: sms.length,
      help: 'Pass one number for all ranks, or a list with an entry per rank; 0 leaves a rank the default share.',
    },
  );
}
