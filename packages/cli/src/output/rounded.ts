// SPDX-License-Identifier: Apache-2.0
// Measured times carry more digits than they are worth.

/** The same object with numbers cut to three decimals; integers stay exact. */
export function rounded<T extends object>(object: T): T {
  return Object.fromEntries(
    Object.entries(object).map(([key, value]) => [
      key,
      typeof value === 'number' && !Number.isInteger(value) ? Math.round(value * 1000) / 1000 : value,
    ]),
  ) as T;
}
