// SPDX-License-Identifier: Apache-2.0
// How uneven a list of loads is, in the figures that people use for it.

export interface Spread {
  readonly load: Float64Array;
  readonly max: number;
  readonly mean: number;
  /** 1 is even; the slowest takes this many times the mean. 1 when nothing is loaded. */
  readonly maxOverMean: number;
  /** Standard deviation over mean; 0 is even. */
  readonly coefficientOfVariation: number;
  /** Of the shares, in units of the largest possible: 1 is even, 0 is all on one. 1 when nothing is loaded or there is one only. */
  readonly entropy: number;
}

export function spreadOf(load: Float64Array): Spread {
  const total = load.reduce((sum, value) => sum + value, 0);
  const max = load.reduce((most, value) => Math.max(most, value), 0);
  if (total === 0) return { load, max, mean: 0, maxOverMean: 1, coefficientOfVariation: 0, entropy: 1 };
  const mean = total / load.length;
  const variance = load.reduce((sum, value) => sum + (value - mean) ** 2, 0) / load.length;
  const nats = load.reduce(
    (sum, value) => (value === 0 ? sum : sum - (value / total) * Math.log(value / total)),
    0,
  );
  return {
    load,
    max,
    mean,
    maxOverMean: max / mean,
    coefficientOfVariation: Math.sqrt(variance) / mean,
    entropy: load.length === 1 ? 1 : nats / Math.log(load.length),
  };
}
