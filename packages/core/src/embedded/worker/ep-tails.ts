// SPDX-License-Identifier: Apache-2.0
// What a dispatch writes beyond the rows that came: zeros where zones are padded, -1 where ids end, the debugging byte elsewhere.

import { epLayouts } from '../../contract/index.js';
import { callWord } from '../ep/ep-words.js';
import { padded } from './ep-plan.js';
import { fillBytesAt } from './ep-rows.js';
import { countsOf, type Ep, getState } from './ep-state.js';

/** Works through the gaps within the budget; true when all are written. */
export function fillTails(ep: Ep): boolean {
  const { call, task } = ep;
  const gaps = gapsOf(ep);
  let next = call[callWord.source]!;
  for (; next < gaps.length; next++) {
    if (task.budget <= 0) break;
    fillGap(ep, gaps[next]!);
  }
  call[callWord.source] = next;
  return next === gaps.length;
}

/** Rows `first` to `end`; `value` -1 leaves tokens, scales and weights alone. */
interface Gap {
  readonly first: number;
  readonly end: number;
  readonly value: number;
}

function gapsOf(ep: Ep): readonly Gap[] {
  const { call, group, localExperts } = ep;
  const layout = epLayouts[call[callWord.layout]!]!;
  const counts = countsOf(ep);
  const count = (at: number): number => counts.words[at * 2]!;
  const { debugFill } = group;
  if (layout === 'expert-major') {
    const slab = group.ranks * group.maxTokens;
    return Array.from({ length: localExperts }, (_, expert) => ({
      first: expert * slab + count(expert),
      end: (expert + 1) * slab,
      value: debugFill,
    }));
  }
  if (layout === 'rank-major') {
    const { maxTokens } = group;
    return Array.from({ length: group.ranks }, (_, source) => ({
      first: source * maxTokens + count(2 * localExperts + source),
      end: (source + 1) * maxTokens,
      value: debugFill,
    }));
  }
  const rest = { first: getState(counts, 'rows'), end: call[callWord.rows]!, value: debugFill };
  if (layout === 'flat') return [rest];
  const alignment = call[callWord.alignment]!;
  const zones = Array.from({ length: localExperts }, (_, expert) => ({
    first: count(localExperts + expert) + count(expert),
    end: count(localExperts + expert) + padded(count(expert), alignment),
    value: 0,
  }));
  return [...zones, rest];
}

function fillGap(ep: Ep, { first, end, value }: Gap): void {
  const { call, group, spaces, task } = ep;
  const layout = epLayouts[call[callWord.layout]!]!;
  const rows = end - first;
  if (rows <= 0) return;
  const fill = (address: number, perRow: number, byte: number): void => {
    if (address !== 0) fillBytesAt(spaces, address + first * perRow, rows * perRow, byte);
  };
  if (layout === 'rank-major')
    fill(call[callWord.outTopkIdx.address]!, group.topK * call[callWord.outTopkIdx.bytes]!, 0xff);
  if (value < 0) return;
  fill(call[callWord.outTokens]!, call[callWord.outRowBytes]!, value);
  fill(call[callWord.outScales]!, call[callWord.scaleBytes]!, value);
  fill(call[callWord.outWeights]!, layout === 'packed' ? 4 : 4 * group.topK, value);
  const bytes = rows * call[callWord.outRowBytes]!;
  task.budget -= bytes;
  group.moved[ep.rank]! += bytes;
}
