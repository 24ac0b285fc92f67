// SPDX-License-Identifier: Apache-2.0
// All checks of expert parallelism.

import type { CheckCase } from '../../cases/case.js';

export const epChecks: readonly CheckCase[] = [];
