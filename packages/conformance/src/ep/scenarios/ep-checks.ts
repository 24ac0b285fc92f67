// SPDX-License-Identifier: Apache-2.0
// All checks of expert parallelism.

import type { CheckCase } from '../../cases/case.js';
import { agreementChecks } from './agreement-checks.js';
import { callRefusals } from './call-refusals.js';
import { epFaultChecks } from './fault-checks.js';
import { layerChecks } from './layer-checks.js';
import { epLifetimeChecks } from './lifetime-checks.js';
import { membershipChecks } from './membership-checks.js';
import { epOrderChecks } from './order-checks.js';
import { refusalChecks } from './refusal-checks.js';
import { epSoakChecks } from './soak-checks.js';

export const epChecks: readonly CheckCase[] = [
  ...layerChecks,
  ...epOrderChecks,
  ...callRefusals,
  ...refusalChecks,
  ...agreementChecks,
  ...epFaultChecks,
  ...membershipChecks,
  ...epLifetimeChecks,
  ...epSoakChecks,
];
