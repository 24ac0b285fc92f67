// SPDX-License-Identifier: Apache-2.0
// `--sms 28,4`: SMs of the ranks that send and of those that receive, which need few.

import { wrongValue } from './arguments.js';

/** SMs of one rank on each side. */
export interface SmShares {
  readonly senders: number;
  readonly receivers: number;
}

const most = 1024;

/** @throws ERR_INVALID_ARGUMENT unless `value` of the option `name` is one number of SMs, or two with `between` them. */
export function smsOf(name: string, value: string, between: ',' | '+'): SmShares {
  const numbers = value.split(between).map((text) => (/^\d+$/.test(text) ? Number(text) : Number.NaN));
  const [senders = Number.NaN, receivers = senders] = numbers;
  if (numbers.length <= 2 && senders <= most && receivers <= most) return { senders, receivers };
  throw wrongValue(name, value, `an integer from 0 to ${most}, or two of them as in 28${between}4`);
}

/** By rank, where the first half sends. */
export function smsByRank({ senders, receivers }: SmShares, ranks: number): number[] {
  return Array.from({ length: ranks }, (_, rank) => (rank < ranks / 2 ? senders : receivers));
}
