// SPDX-License-Identifier: Apache-2.0
// The move of a combine: this rank sums, for each of its tokens, the rows that ranks made of it, from their memory.

import { epLayouts, epPasses, epQuantizations, epReductions, maxTopK } from '../../contract/index.js';
import { callWord, descriptorWord } from '../ep/ep-words.js';
import { floatsAt, intsAt } from './ep-group.js';
import { type SumRule, sumRow, type Terms } from './ep-rows.js';
import { type Ep, entered, slotsOf } from './ep-state.js';

const weighted = 1;
const lastOfRank = 2;

/** Sums within the budget; true when all tokens are done. */
export function moveCombine(ep: Ep): boolean {
  const { call, group, task } = ep;
  const tokens = call[callWord.tokens]!;
  if (tokens === 0) return true;
  const sums = openSums(ep, tokens);
  let token = call[callWord.token]!;
  for (; token < tokens && task.budget > 0; token++) {
    sums.gather(token);
    const to = call[callWord.outTokens]! + token * sums.rule.bytes;
    sumRow(ep.spaces, to, terms, sums.rule);
    const cost = (terms.count + 1) * sums.rule.bytes;
    task.budget -= cost;
    group.moved[ep.rank]! += cost;
  }
  call[callWord.token] = token;
  return token === tokens;
}

const terms: Terms = {
  count: 0,
  address: new Float64Array(maxTopK),
  weight: new Float32Array(maxTopK),
  flags: new Int32Array(maxTopK),
};

/** One rank's side of the sums: where its rows are, and what row each entry got. */
interface Owner {
  readonly rows: number;
  readonly address: number;
  readonly slots: Int32Array;
  readonly gradients: Float32Array | undefined;
}

interface Sums {
  readonly rule: SumRule;
  /** Lists the terms of a token, and writes its weight gradients. */
  gather(token: number): void;
}

function openSums(ep: Ep, tokens: number): Sums {
  const { call, group, spaces } = ep;
  const { topK, hidden, elementBytes } = group;
  const layout = epLayouts[call[callWord.layout]!]!;
  const fp8 = epQuantizations[call[callWord.quantization]!] === 'fp8';
  const perEntry = layout === 'expert-major' || layout === 'packed';
  const byToken = perEntry && epReductions[group.reduction] === 'token';
  const rule: SumRule = {
    dtype: group.dtype,
    bytes: hidden * elementBytes,
    elementBytes,
    payload: fp8 ? 'fp8' : !perEntry ? 'plain' : byToken || group.dtype === 1 ? 'none' : 'dtype',
  };
  const experts = intsAt(spaces, call[callWord.experts]!, tokens * topK);
  const weights =
    layout === 'expert-major' ? floatsAt(spaces, call[callWord.weights]!, tokens * topK) : undefined;
  const backward = epPasses[call[callWord.pass]!] === 'backward';
  const gradientsPerRow = layout === 'packed' ? 1 : topK;
  const out = backward ? floatsAt(spaces, call[callWord.outWeights]!, tokens * topK) : undefined;
  const owners = new Map<number, Owner>();
  for (const peer of ep.members)
    owners.set(peer, openOwner(ep, peer, tokens, backward ? gradientsPerRow : 0));

  const gather = (token: number): void => {
    terms.count = 0;
    out?.fill(0, token * topK, (token + 1) * topK);
    // Entries by rank, each rank's in top-k order; `token` takes all in top-k order.
    for (let rank = -1; ; ) {
      rank = byToken ? 0 : nextRank(rank, token);
      if (rank === Number.POSITIVE_INFINITY) break;
      addTerms(rank, token);
      if (byToken) break;
    }
    if (terms.count > 0) terms.flags[terms.count - 1]! |= lastOfRank;
  };

  const nextRank = (after: number, token: number): number => {
    let next = Number.POSITIVE_INFINITY;
    for (let at = token * topK; at < (token + 1) * topK; at++) {
      const physical = experts[at]!;
      if (physical < 0) continue;
      const rank = group.rankOf[physical]!;
      if (rank > after && rank < next) next = rank;
    }
    return next;
  };

  const addTerms = (rank: number, token: number): void => {
    let position = 0;
    let used = false;
    for (let at = token * topK; at < (token + 1) * topK; at++) {
      const physical = experts[at]!;
      if (physical < 0) continue;
      const owner = group.rankOf[physical]!;
      if (!byToken && owner !== rank) continue;
      const side = owners.get(owner);
      const slot = side?.slots[at] ?? -1;
      const live = side !== undefined && slot >= 0 && slot < side.rows;
      if (out !== undefined) {
        const index = slot * gradientsPerRow + (layout === 'packed' ? 0 : position);
        if (live) out[at] = side.gradients![index]!;
      }
      position++;
      if (!live || (used && !perEntry)) continue;
      used = true;
      terms.address[terms.count] = side.address + slot * rule.bytes;
      terms.weight[terms.count] = weights === undefined ? 1 : weights[at]!;
      terms.flags[terms.count] = weights === undefined ? 0 : weighted;
      terms.count++;
    }
    // Plain rows of several ranks are one sum, unless each is rounded by itself.
    if (used && (perEntry || fp8) && !byToken) terms.flags[terms.count - 1]! |= lastOfRank;
  };
  return { rule, gather };
}

function openOwner(ep: Ep, peer: number, tokens: number, gradientsPerRow: number): Owner {
  const rows = entered(ep, peer, descriptorWord.rows);
  const gradients = entered(ep, peer, descriptorWord.gradientsAddress);
  return {
    rows,
    address: entered(ep, peer, descriptorWord.tokensAddress),
    slots: slotsOf(ep, peer, ep.rank, tokens),
    gradients:
      gradientsPerRow === 0 || gradients === 0
        ? new Float32Array(0)
        : floatsAt(ep.spaces, gradients, rows * gradientsPerRow),
  };
}
