// SPDX-License-Identifier: Apache-2.0
// Makes a group on every rank, or refuses on every rank.

import { type Communicator, NcclExtError } from '@nccl-ext/core';
import type { EpGroupConfig, EpSpi } from '@nccl-ext/core/contract';
import { backendOf, dtypeCode, rankHandleOf, refuseTogether, unwrap } from '@nccl-ext/core/extend';
import { agreedFields, canonicalAgreed } from '../config/agreed-fields.js';
import type { EpConfig } from '../config/ep-config.js';
import type { EpSettings } from '../config/ep-settings.js';
import { parseConfig } from '../config/parse-config.js';
import { type ClaimedMemory, claimMemory } from '../memory/claim-memory.js';
import { type EpMemoryLayout, layoutOfSettings } from '../memory/layout-of.js';
import { EpGroup } from './ep-group.js';

/**
 * Collective over the whole communicator: a group whose handles route, dispatch and combine the tokens of these ranks. `epMemory` says
 * what it takes before, `probeEp` whether it can be.
 *
 * @throws ERR_INVALID_ARGUMENT naming the field, ERR_DISAGREEMENT when ranks pass different options (ranks and option named),
 * ERR_RANK_LOST on the other ranks when one refuses, ERR_OUT_OF_MEMORY, ERR_UNSUPPORTED when the backend has no expert parallelism.
 * @example
 * ```ts
 * const group = await createEpGroup(comm, { experts: 8, topK: 2, hidden: 64, dtype: 'bf16', maxTokensPerRank: 16 });
 * const handle = group.createHandle({ layout: 'flat' });
 * await group.dispose();
 * ```
 */
export async function createEpGroup(communicator: Communicator, config: EpConfig): Promise<EpGroup> {
  const { runtime, ep: spi, info } = backendOf(communicator);
  let claimed: ClaimedMemory | undefined;
  try {
    const names = { op: 'create an EP group', topic: 'EP group' };
    const { settings, ep } = await refuseTogether(communicator, names, () => {
      const value = {
        settings: parseConfig(config, communicator.size, communicator.timeoutMs),
        ep: requireEp(spi, info.name),
      };
      const { group } = layoutOfSettings(value.settings);
      claimed = claimMemory(communicator, config.memory, 'group', group.bytes);
      return { value, fields: agreedFields(value.settings) };
    });
    const layout = layoutOfSettings(settings);
    const created = await ep.createEpGroup(
      rankHandleOf(communicator),
      contractConfig(settings, layout, claimed!),
    );
    const core = { communicator, runtime, ep, settings, layout, memory: config.memory, changes: 0 };
    return new EpGroup({ ...core, handle: unwrap(created) }, claimed!);
  } catch (error) {
    claimed?.release();
    throw error;
  }
}

function contractConfig(settings: EpSettings, layout: EpMemoryLayout, memory: ClaimedMemory): EpGroupConfig {
  const { map, ranks: _, dtype, ...options } = settings;
  return {
    ...options,
    agreed: canonicalAgreed(settings),
    experts: map.experts,
    firstPhysical: map.firstPhysical,
    expertOf: map.expertOf,
    replicaRule: map.replicaRule,
    dtype: dtypeCode(dtype),
    layout: layout.group,
    memory: memory.range,
  };
}

function requireEp(ep: EpSpi | undefined, backend: string): EpSpi {
  if (ep !== undefined) return ep;
  throw new NcclExtError('ERR_UNSUPPORTED', `The ${backend} backend has no expert parallelism.`, {
    help: "Use localWorld({ ranks, backend: 'embedded' }), or update the backend package.",
  });
}
