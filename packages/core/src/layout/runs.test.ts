// SPDX-License-Identifier: Apache-2.0
// Positions go from local to global and back as the list of elements says.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { holding, positions } from './run-lists.test-util.js';
import { globalToLocal, localToGlobal } from './runs.js';

describe('localToGlobal and globalToLocal', () => {
  it('agree with the list', () => {
    fc.assert(
      fc.property(positions(100), (list) => {
        const runs = holding(list);
        expect(list.map((_, local) => localToGlobal(runs, local))).toEqual(list);
        for (let global = 0; global < 100; global++) {
          const local = list.indexOf(global);
          expect(globalToLocal(runs, global)).toBe(local < 0 ? undefined : local);
        }
      }),
    );
  });
});
