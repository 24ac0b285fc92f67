// SPDX-License-Identifier: Apache-2.0
// The JSON object of `nccl-ext plan ep --json`. Times are microseconds, sizes bytes, lists are by rank or by physical expert.

import { rounded } from '../output/rounded.js';
import { maxAndMean } from './max-and-mean.js';
import type { PassBound } from './pass-bound.js';
import type { EpPlanFacts } from './plan-ep.js';

export function epPlanJson({
  input,
  balance,
  received,
  rowBytes,
  bytesByLink,
  memory,
  bounds,
}: EpPlanFacts): Record<string, unknown> {
  const { config, ranks, layout, alignment, quantization, routing, topkIdx } = input;
  const { topK, hidden, dtype, experts, maxTokensPerRank, receiveBudget = 'eager' } = config;
  return {
    ok: true,
    ranks,
    experts: typeof experts === 'number' ? experts : experts.count,
    topK,
    hidden,
    dtype,
    layout,
    alignment,
    quantization,
    maxTokensPerRank,
    receiveBudget,
    routing,
    tokens: topkIdx.map((ids) => ids.length / topK),
    entries: balance.entries,
    notRouted: balance.dropped,
    receivedRows: spreadJson(received),
    tokensPerRank: spreadJson(balance.rows.load),
    entriesPerRank: spreadJson(balance.rank.load),
    entriesPerExpert: spreadJson(balance.physical.load),
    rowBytes,
    bytesByLink,
    memory: { group: memory.group, handle: memory.handle, layout: memory.layouts[layout] },
    lowerBound: { dispatch: boundJson(bounds.dispatch), combine: boundJson(bounds.combine) },
  };
}

function spreadJson(load: Float64Array): Record<string, unknown> {
  const { max, mean, maxOverMean } = maxAndMean(load);
  return { ...rounded({ max, mean, maxOverMean }), list: Array.from(load) };
}

function boundJson({ seconds, ...rest }: PassBound): Record<string, unknown> {
  return { ...rounded({ us: seconds * 1e6 }), ...rest };
}
