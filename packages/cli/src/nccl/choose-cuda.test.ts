// SPDX-License-Identifier: Apache-2.0
// The backend decides, then the driver, then the person.

import type { PackageReport } from '@nccl-ext/core';
import { expect, it } from 'vitest';
import { chooseCuda } from './choose-cuda.js';

function packages(...installed: string[]): PackageReport[] {
  return (['cuda12', 'cuda13'] as const).map((name) => ({
    name,
    installed: installed.includes(name),
    version: undefined,
    path: undefined,
    problem: undefined,
  }));
}

it.each([
  [['cuda12'], '595.1', 12],
  [['cuda13'], undefined, 13],
  [[], '580.65.06', 13],
  [[], '579.99', 12],
  [['cuda12', 'cuda13'], '535.1', 12],
])('backends %j and driver %s give CUDA %i', (installed, driver, cuda) => {
  expect(chooseCuda({ packages: packages(...installed), driver })).toBe(cuda);
});

it.each([[[]], [['cuda12', 'cuda13']]])('asks with backends %j and no driver', (installed) => {
  const choose = (): number => chooseCuda({ packages: packages(...installed), driver: undefined });
  expect(choose).toThrow(expect.objectContaining({ code: 'ERR_INVALID_ARGUMENT', field: '--cuda' }));
});
