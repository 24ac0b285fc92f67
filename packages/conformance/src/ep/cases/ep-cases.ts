// SPDX-License-Identifier: Apache-2.0
// All cases of expert parallelism that are data.

import { backwardCases } from './backward-cases.js';
import { budgetCases } from './budget-cases.js';
import { combineCases } from './combine-cases.js';
import type { EpCase } from './ep-case.js';
import { executionCases } from './execution-cases.js';
import { expertCases } from './expert-cases.js';
import { layoutCases } from './layout-cases.js';
import { quantizationCases } from './quantization-cases.js';
import { routingCases } from './routing-cases.js';
import { shapeCases } from './shape-cases.js';

export const epCases: readonly EpCase[] = [
  ...layoutCases,
  ...shapeCases,
  ...routingCases,
  ...expertCases,
  ...budgetCases,
  ...quantizationCases,
  ...combineCases,
  ...backwardCases,
  ...executionCases,
];
