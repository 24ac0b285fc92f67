// SPDX-License-Identifier: Apache-2.0
// How much more the busiest of a list has than the others.

export function maxAndMean(load: Float64Array): {
  readonly max: number;
  readonly mean: number;
  /** 1 is even. */
  readonly maxOverMean: number;
} {
  const max = load.reduce((most, value) => Math.max(most, value), 0);
  const mean = load.reduce((sum, value) => sum + value, 0) / Math.max(1, load.length);
  return { max, mean, maxOverMean: mean === 0 ? 1 : max / mean };
}
