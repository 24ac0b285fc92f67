// SPDX-License-Identifier: Apache-2.0
// Plans a transfer: from what ranks hold and what they want to who sends which bytes to whom.

import { NcclExtError, resolveOptions } from '@nccl-ext/core';
import { describe, requireArray, requireObject } from '@nccl-ext/core/extend';
import { assign } from './assign.js';
import { buildClasses } from './build-classes.js';
import { normaliseRequest } from './normalise-request.js';
import { RecentlyUsed } from './plan-cache.js';
import { PlanContext } from './plan-class.js';
import type { PlanRequest } from './plan-request.js';
import { TopologyIndex } from './topology-index.js';
import { TransferPlan } from './transfer-plan.js';

const cache = new RecentlyUsed<TransferPlan>();

/**
 * The plan of a transfer. Synchronous and deterministic: ranks that ask for the same get the same, without talking.
 * An equal request gives the plan that was made for it before, while it is in the cache.
 *
 * @throws ERR_SHAPE_MISMATCH, ERR_CAST or ERR_COVERAGE when a tensor cannot be transferred; ERR_INVALID_ARGUMENT for
 * repeated names and ranks outside the world; ERR_TOPOLOGY when the topology does not describe all ranks.
 * @example
 * ```ts
 * const from = layout({ shape: [1024, 512], dtype: 'bf16', mesh: mesh({ tp: 4 }), placements: { tp: shard(0) } });
 * const to = layout({ shape: [1024, 512], dtype: 'bf16', mesh: mesh({ tp: 2 }, { startRank: 4 }), placements: { tp: shard(1) } });
 * const plan = createPlan({ tensors: [{ name: 'weight', source: from, destination: to }] });
 * plan.totals.wireBytes; // 1048576
 * plan.program(0).sends.length; // 2: half of its rows to each of the two destinations
 * ```
 */
export function createPlan(request: PlanRequest): TransferPlan {
  requireObject('request', request);
  requireArray('request.tensors', request.tensors);
  const { cacheEntries = resolveOptions().values.planCacheEntries } = request;
  if (!Number.isInteger(cacheEntries) || cacheEntries < 0) {
    throw new NcclExtError(
      'ERR_INVALID_ARGUMENT',
      `cacheEntries must be an integer from 0, got ${describe(cacheEntries)}.`,
      {
        field: 'cacheEntries',
        seen: cacheEntries,
      },
    );
  }
  const normalised = normaliseRequest(request);
  const known = cacheEntries > 0 ? cache.get(normalised.digest) : undefined;
  if (known) return known;
  const { worldSize, topology } = normalised;
  const context = new PlanContext(new TopologyIndex(topology, worldSize));
  const classes = buildClasses(context, normalised);
  const totals = assign(context, classes.classes, worldSize, classes.entries);
  const plan = new TransferPlan({ normalised, context, classes, totals });
  if (cacheEntries > 0) cache.set(normalised.digest, plan, cacheEntries);
  return plan;
}
