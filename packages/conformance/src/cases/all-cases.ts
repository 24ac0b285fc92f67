// SPDX-License-Identifier: Apache-2.0
// The whole table, in the order of the groups.

import { epCases } from '../ep/cases/ep-cases.js';
import { epChecks } from '../ep/scenarios/ep-checks.js';
import { refusalCases } from '../refusals/refusal-cases.js';
import { eventChecks } from '../scenarios/event-checks.js';
import { faultChecks } from '../scenarios/fault-checks.js';
import { largeChecks } from '../scenarios/large-checks.js';
import { lifetimeChecks } from '../scenarios/lifetime-checks.js';
import { lossChecks } from '../scenarios/loss-checks.js';
import { orderChecks } from '../scenarios/order-checks.js';
import { publishChecks } from '../scenarios/publish-checks.js';
import { reshardChecks } from '../scenarios/reshard-checks.js';
import { soakChecks } from '../scenarios/soak-checks.js';
import { boundaryCases } from './boundary-cases.js';
import type { ConformanceCase } from './case.js';
import { dtypeCases } from './dtype-cases.js';
import { executionCases } from './execution-cases.js';
import { gridCases, largeGridCases } from './grid-cases.js';
import { type GroupName, groups } from './groups.js';
import { largeCases } from './large-cases.js';
import { meshCases } from './mesh-cases.js';
import { modelShapeCases } from './model-shape-cases.js';
import { nestedCases } from './nested-cases.js';
import { placementCases } from './placement-cases.js';
import { storageCases } from './storage-cases.js';
import { topologyCases } from './topology-cases.js';

let sorted: readonly ConformanceCase[] | undefined;

/** Every case. */
export function allCases(): readonly ConformanceCase[] {
  sorted ??= inGroupOrder([
    ...gridCases,
    ...dtypeCases,
    ...boundaryCases,
    ...placementCases,
    ...nestedCases,
    ...modelShapeCases,
    ...storageCases,
    ...meshCases,
    ...topologyCases,
    ...executionCases,
    ...reshardChecks,
    ...orderChecks,
    ...refusalCases,
    ...lossChecks,
    ...eventChecks,
    ...faultChecks,
    ...publishChecks,
    ...lifetimeChecks,
    ...[...epCases, ...epChecks].map((one) => ({ ...one, needsEp: true as const })),
    ...soakChecks,
    ...largeChecks,
    ...largeCases,
    ...largeGridCases,
  ]);
  return sorted;
}

function inGroupOrder(cases: readonly ConformanceCase[]): readonly ConformanceCase[] {
  const order = Object.keys(groups) as GroupName[];
  // Within a group by ranks, so that worlds are reused.
  return cases.toSorted((a, b) => order.indexOf(a.group) - order.indexOf(b.group) || a.ranks - b.ranks);
}
