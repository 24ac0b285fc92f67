// SPDX-License-Identifier: Apache-2.0
// `--sms 28,4`: SMs of the ranks that send and of those that receive, which need few. `--sms 0`: copy engines instead of SMs.

import type { ArgDef } from 'citty';
import { wrongValue } from './arguments.js';

/** Of commands whose ranks have sides. */
export const smsArgument: ArgDef = {
  type: 'string',
  valueHint: 'N[,N]',
  description:
    'SMs of a GPU that each rank may use, or each rank that sends and each that only receives, as in 28,4; 0: copy engines alone move the bytes; default the share of a rank',
};

/** SMs of one rank on each side; both are 0 where copy engines move the bytes. */
export interface SmShares {
  readonly senders: number;
  readonly receivers: number;
}

export const copyEngines: SmShares = { senders: 0, receivers: 0 };

const most = 1024;

/** @throws ERR_INVALID_ARGUMENT unless `value` of the option `name` is 0, one number of SMs, or two with `between` them. */
export function smsOf(name: string, value: string, between: ',' | '+'): SmShares {
  const numbers = value.split(between).map((text) => (/^\d+$/.test(text) ? Number(text) : Number.NaN));
  if (numbers.length === 1 && numbers[0] === 0) return copyEngines;
  const [senders = Number.NaN, receivers = senders] = numbers;
  if (numbers.length <= 2 && isShare(senders) && isShare(receivers)) return { senders, receivers };
  throw wrongValue(
    name,
    value,
    `0 for copy engines, an integer from 1 to ${most}, or two of these as in 28${between}4`,
  );
}

function isShare(sms: number): boolean {
  return sms >= 1 && sms <= most;
}

/** Whether copy engines move the bytes, so that ranks keep their default shares. */
export function byCopyEngines(shares: SmShares | undefined): boolean {
  return shares?.senders === 0;
}

/** By rank, where the first half sends. */
export function smsByRank({ senders, receivers }: SmShares, ranks: number): number[] {
  return Array.from({ length: ranks }, (_, rank) => (rank < ranks / 2 ? senders : receivers));
}
