// SPDX-License-Identifier: Apache-2.0
// Writes counts of a plan to the integer outputs that a call named.

import { epLayouts } from '../../contract/index.js';
import { type CounterWords, callWord } from '../ep/ep-words.js';
import { intsAt } from './ep-group.js';
import { padded } from './ep-plan.js';
import { countsOf, type Ep, getState } from './ep-state.js';

/** Outputs of a call that are absent stay unwritten. */
export function writeCounters(ep: Ep): void {
  const { call, localExperts, group } = ep;
  const counts = countsOf(ep);
  const list = (first: number, length: number): readonly number[] =>
    Array.from({ length }, (_, i) => counts.words[(first + i) * 2]!);
  const packed = epLayouts[call[callWord.layout]!] === 'packed';
  const perExpert = list(0, localExperts);
  const alignment = call[callWord.alignment]!;
  write(ep, callWord.expertCounts, packed ? perExpert.map((rows) => padded(rows, alignment)) : perExpert);
  write(ep, callWord.expertOffsets, list(localExperts, localExperts));
  write(ep, callWord.sourceCounts, list(2 * localExperts, group.ranks));
  write(ep, callWord.total, [getState(counts, 'rows')]);
  write(ep, callWord.demand, [getState(counts, 'demand')]);
}

function write(ep: Ep, counter: CounterWords, values: readonly number[]): void {
  const address = ep.call[counter.address]!;
  if (address === 0 || values.length === 0) return;
  const words = ep.call[counter.bytes]! / 4;
  const out = intsAt(ep.spaces, address, values.length * words);
  values.forEach((value, at) => {
    out[at * words] = value;
    if (words === 2) out[at * 2 + 1] = value < 0 ? -1 : 0;
  });
}
