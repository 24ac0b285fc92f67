// SPDX-License-Identifier: Apache-2.0
// Totals of bytes and times over ranks.

export function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
