// SPDX-License-Identifier: Apache-2.0
// Drops rows that do not fit a budget: takes them in the order of the policy until the first that no longer fits.

import type { EpOverflow } from '@nccl-ext/core/contract';
import type { Unit } from './received.js';

/** Kept units in their first order, which is by (source, token, k). */
export function keepRows(
  units: readonly Unit[],
  policy: Exclude<EpOverflow, 'error'>,
  fits: (units: readonly Unit[]) => boolean,
): Unit[] {
  const order = policy === 'drop-by-source' ? [...units] : units.toSorted(byWeight);
  const kept = new Set<Unit>();
  for (const unit of order) {
    if (!fits([...kept, unit])) break;
    kept.add(unit);
  }
  return units.filter((unit) => kept.has(unit));
}

/** Largest first; sorting is stable, so equal ones stay in order. */
function byWeight(a: Unit, b: Unit): number {
  const [x, y] = [largest(a), largest(b)];
  return x === y ? 0 : y > x ? 1 : -1;
}

/** A weight that is no number counts as the least. */
function largest(unit: Unit): number {
  return Math.max(...unit.map(({ weight }) => (Number.isNaN(weight) ? Number.NEGATIVE_INFINITY : weight)));
}
