// SPDX-License-Identifier: Apache-2.0
// What differs between the rows of one result: SM budgets, or sizes of the tensor.

import { binaryBytesText } from '../../packages/cli/dist/output/units.js';

/** As the command prints them; 0 stands for copy engines. */
export function smsOf({ sms }) {
  if (sms === undefined) return '-';
  return sms.senders === sms.receivers ? String(sms.senders) : `${sms.senders}+${sms.receivers}`;
}

/** The same as the head of a column. */
export function columnOf(sms) {
  if (sms === '-') return 'time, rate, of bound';
  return sms === '0' ? 'copy engines' : `${sms} SMs`;
}

/** The distinct values of `of` over `rows`, in their order. */
export function distinct(rows, of) {
  return [...new Set(rows.map(of))];
}

/** What a picture has from left to right: SMs where several were compared, else sizes. */
export function axisOf(rows) {
  if (distinct(rows, smsOf).length > 1)
    return { name: 'SMs per rank (senders+receivers; 0: copy engines)', of: smsOf };
  return { name: 'bytes of the tensor', of: ({ tensorBytes }) => binaryBytesText(tensorBytes) };
}
