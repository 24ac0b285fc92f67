// SPDX-License-Identifier: Apache-2.0
// The move of a dispatch: this rank fetches the rows that come to it from the memory of their sources.

import { epLayouts, epQuantizations } from '../../contract/index.js';
import { callWord, descriptorWord } from '../ep/ep-words.js';
import { floatsAt, intsAt } from './ep-group.js';
import { localOf } from './ep-plan.js';
import { copyRow, type QuantiseRule, quantiseRow } from './ep-rows.js';
import { type Ep, entered, slotsOf, snapshotOf, weightsOf } from './ep-state.js';
import { fillTails } from './ep-tails.js';

// A row has a cost of its own, however short it is.
const leastCost = 64;

/** Moves within the budget; true when all rows, and what lies beyond them, are written. */
export function moveDispatch(ep: Ep): boolean {
  const { call, members } = ep;
  while (call[callWord.stage] === 0) {
    if (ep.task.budget <= 0) return false;
    const index = call[callWord.source]!;
    if (index === members.length) {
      call[callWord.stage] = 1;
      call[callWord.source] = 0;
      break;
    }
    if (!fetchFrom(ep, members[index]!)) return false;
    call[callWord.source] = index + 1;
    call[callWord.token] = 0;
  }
  return fillTails(ep);
}

/** What the rows of one call have in common. */
interface RowPlan {
  readonly rowBytes: number;
  readonly outRowBytes: number;
  readonly scaleBytes: number;
  readonly outTokens: number;
  readonly outScales: number;
  readonly quantise: QuantiseRule | undefined;
}

function fetchFrom(ep: Ep, source: number): boolean {
  const { call, group, task } = ep;
  const { topK } = group;
  const experts = snapshotOf(ep, source);
  const tokens = experts.length / topK;
  const slots = slotsOf(ep, ep.rank, source, tokens);
  const plan = rowPlan(ep);
  const packed = epLayouts[call[callWord.layout]!] === 'packed';
  const outs = outputs(ep, source, packed);
  let token = call[callWord.token]!;
  for (; token < tokens && task.budget > 0; token++) {
    let first = -1;
    for (let at = token * topK; at < (token + 1) * topK; at++) {
      const slot = slots[at]!;
      if (slot < 0 || slot === first) continue;
      placeRow(ep, plan, source, token, slot, first);
      // Arithmetic takes its time as well.
      const computed = plan.quantise !== undefined && first < 0 ? plan.rowBytes * 4 : 0;
      const cost = Math.max(leastCost, plan.outRowBytes + computed);
      task.budget -= cost;
      group.moved[ep.rank]! += cost;
      if (packed) outs.entry(slot, at);
      if (first < 0) {
        if (!packed) outs.row(slot, token, experts);
        first = slot;
      }
    }
  }
  call[callWord.token] = token;
  return token === tokens;
}

/** `first` is the row of this token that is already there, -1 for none. */
function placeRow(ep: Ep, plan: RowPlan, source: number, token: number, slot: number, first: number): void {
  const { spaces } = ep;
  const to = plan.outTokens + slot * plan.outRowBytes;
  const scalesTo = plan.outScales + slot * plan.scaleBytes;
  const from = entered(ep, source, descriptorWord.tokensAddress) + token * plan.rowBytes;
  if (plan.quantise === undefined) {
    copyRow(spaces, to, from, plan.outRowBytes);
    if (plan.scaleBytes === 0) return;
    const scales = entered(ep, source, descriptorWord.scalesAddress) + token * plan.scaleBytes;
    copyRow(spaces, scalesTo, scales, plan.scaleBytes);
  } else if (first < 0) quantiseRow(spaces, to, scalesTo, from, plan.quantise);
  else {
    copyRow(spaces, to, plan.outTokens + first * plan.outRowBytes, plan.outRowBytes);
    copyRow(spaces, scalesTo, plan.outScales + first * plan.scaleBytes, plan.scaleBytes);
  }
}

function rowPlan({ call, group }: Ep): RowPlan {
  const recipe = call[callWord.quantization]!;
  const scaleBytes = call[callWord.scaleBytes]!;
  const { hidden, dtype, elementBytes } = group;
  return {
    rowBytes: call[callWord.rowBytes]!,
    outRowBytes: call[callWord.outRowBytes]!,
    scaleBytes,
    outTokens: call[callWord.outTokens]!,
    outScales: call[callWord.outScales]!,
    quantise:
      recipe < epQuantizations.indexOf('fp8')
        ? undefined
        : { recipe, dtype, elements: hidden, elementBytes, scaleBytes },
  };
}

interface Outputs {
  /** Weight of one entry, in `packed`. */
  entry(slot: number, at: number): void;
  /** Weights and experts of a row in top-k order, in the other layouts. */
  row(slot: number, token: number, experts: Int32Array): void;
}

function outputs(ep: Ep, source: number, packed: boolean): Outputs {
  const { call, group, spaces } = ep;
  const { topK } = group;
  const rows = call[callWord.rows]!;
  const address = call[callWord.outWeights]!;
  const perRow = packed ? 1 : topK;
  const out = address === 0 ? undefined : floatsAt(spaces, address, rows * perRow);
  const weights = out === undefined ? undefined : weightsOf(ep, source);
  const idAddress = call[callWord.outTopkIdx.address]!;
  const words = call[callWord.outTopkIdx.bytes]! / 4;
  const ids = idAddress === 0 ? undefined : intsAt(spaces, idAddress, rows * topK * words);
  const local = call[callWord.idsLocal] === 1;
  return {
    entry(slot, at) {
      if (out !== undefined) out[slot] = weights![at]!;
    },
    row(slot, token, experts) {
      if (out === undefined && ids === undefined) return;
      let next = slot * topK;
      for (let at = token * topK; at < (token + 1) * topK; at++) {
        const expert = localOf(ep, experts[at]!);
        if (expert < 0) continue;
        if (out !== undefined) out[next] = weights![at]!;
        if (ids !== undefined) writeId(ids, words, next, local ? expert : group.expertOf[experts[at]!]!);
        next++;
      }
      for (; next < (slot + 1) * topK; next++) {
        if (out !== undefined) out[next] = 0;
        if (ids !== undefined) writeId(ids, words, next, -1);
      }
    },
  };
}

function writeId(ids: Int32Array, words: number, at: number, id: number): void {
  ids[at * words] = id;
  if (words === 2) ids[at * 2 + 1] = id < 0 ? -1 : 0;
}
