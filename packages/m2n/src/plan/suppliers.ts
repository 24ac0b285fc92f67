// SPDX-License-Identifier: Apache-2.0
// Names the ranks that may serve a demand, in the order in which they share it.

import { ranksIn } from './domain-groups.js';
import type { PlanContext } from './plan-class.js';
import type { Atom } from './side.js';

/** Holders of `atom` in `domain`; for demand of domains without a source (-1) all holders, by rail. */
export function suppliersOf({ domains, topology }: PlanContext, atom: Atom, domain: number): Int32Array {
  if (domain >= 0) return ranksIn(domains.of(atom), domain);
  const { rail } = topology;
  return Int32Array.from([...atom.ranks].sort((x, y) => rail[x]! - rail[y]! || x - y));
}
