// SPDX-License-Identifier: Apache-2.0
// The use of a context by one operation: when it may begin, its tag, and its end.
//
// A context serves one operation after the other. An operation begins when as many uses have ended as the host had given out
// before it, so that streams of one rank cannot overtake each other there. A new epoch counts from nothing: what is left of
// the old one ends without touching the words.

import { callWord, contextWord } from '../ep/ep-words.js';
import { holderWord } from './ep-group.js';
import { type Ep, tagOf } from './ep-state.js';
import { wakeWorld } from './task.js';

const epochShift = 32n;

/** Takes the context, and gives the use its tag; false when earlier uses have not ended. */
export function beginUse(ep: Ep): boolean {
  const { call, context, epoch, group } = ep;
  const { i64 } = group.space;
  const ended = Atomics.load(i64, context + contextWord.usesI64);
  const waits = call[callWord.ticketEpoch] === epoch ? call[callWord.ticket]! : 0;
  if (Number(ended >> epochShift) === epoch && Number(BigInt.asUintN(32, ended)) < waits) return false;
  if (Number(ended >> epochShift) !== epoch && waits > 0) return false;
  if (!holdContext(ep)) return false;
  const last = Atomics.load(i64, context + contextWord.enteredI64);
  const fresh = BigInt(epoch) << epochShift;
  call.fill(0, callWord.use);
  call[callWord.use] = Number((last >= fresh ? last : fresh) + 1n);
  return true;
}

/** Nobody else changes this rank's words of the context while this stream holds it. */
export function holdContext(ep: Ep): boolean {
  const word = holderWord(ep.context);
  return Atomics.compareExchange(ep.group.space.i32, word, 0, ep.task.stream + 1) === 0;
}

export function letGo(ep: Ep): void {
  const { i32 } = ep.group.space;
  const mine = ep.task.stream + 1;
  Atomics.compareExchange(i32, holderWord(ep.context), mine, 0);
  wakeWorld(ep.task.world);
}

/** Counts the use as over, and lets the next one begin. */
export function endUse(ep: Ep): void {
  const { call, context, epoch, group } = ep;
  const { i64 } = group.space;
  call[callWord.ended] = 1;
  const fresh = BigInt(epoch) << epochShift;
  for (;;) {
    const ended = Atomics.load(i64, context + contextWord.usesI64);
    if (Number(ended >> epochShift) > epoch) break;
    const next = (ended >= fresh ? ended : fresh) + 1n;
    if (Atomics.compareExchange(i64, context + contextWord.usesI64, ended, next) === ended) break;
  }
  letGo(ep);
}

/** Ends a use that cannot be finished: peers that wait for it need not wait on. */
export function abandonUse(ep: Ep): void {
  const { call, context, group } = ep;
  if (call[callWord.ended] === 1) return;
  if (call[callWord.use] !== 0) {
    const { i64 } = group.space;
    if (Atomics.load(i64, context + contextWord.abandonedI64) < tagOf(ep))
      Atomics.store(i64, context + contextWord.abandonedI64, tagOf(ep));
  }
  endUse(ep);
}
