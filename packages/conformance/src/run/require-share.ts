// SPDX-License-Identifier: Apache-2.0
// Refuses SMs that ranks do not have before the first case: each reshard of the larger worlds would fail by itself.

import { NcclExtError } from '@nccl-ext/core';
import type { ConformanceCase } from '../cases/case.js';
import type { ProcessGroup } from './process-group.js';
import type { WorldPool } from './world-pool.js';

/**
 * Looks at the largest world that a reshard needs, where ranks have the smallest shares. Ranks without a GPU have none and take any number.
 *
 * @throws ERR_INVALID_ARGUMENT on every process when `sms` is more than the share of a rank on one.
 */
export async function requireShare(
  pool: WorldPool,
  cases: readonly ConformanceCase[],
  sms: number | undefined,
  processes: ProcessGroup | undefined,
): Promise<void> {
  const moves = cases.filter(({ kind }) => kind === 'move');
  if (sms === undefined || sms === 0 || moves.length === 0) return;
  const largest = moves.reduce((most, one) => (one.ranks > most.ranks ? one : most));
  const share = await shareIn(pool, largest.ranks);
  const own = sms > share ? [`${share} SMs`] : [];
  const few = processes === undefined ? own : await processes.objections(own[0]);
  if (few.length === 0) return;
  throw new NcclExtError(
    'ERR_INVALID_ARGUMENT',
    `${sms} SMs are more than a rank has in cases with ${largest.ranks} ranks: ${few.join(', ')}.`,
    {
      field: 'sms',
      seen: sms,
      help: 'Ask for fewer, leave out cases with more ranks (--ranks), or give every rank more (NCCL_EXT_SMS).',
    },
  );
}

/** The smallest share of a rank of this process. */
async function shareIn(pool: WorldPool, ranks: number): Promise<number> {
  // A world that cannot be made is for the cases to report.
  const world = await pool.shared(ranks).catch(() => undefined);
  const shares = world?.ranks.map(({ device }) => device.smBudget).filter((share) => share > 0) ?? [];
  return Math.min(...shares);
}
