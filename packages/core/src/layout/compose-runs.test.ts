// SPDX-License-Identifier: Apache-2.0
// A selection from a selection is what picking from lists gives.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { composeRuns } from './compose-runs.js';
import { holding, positions } from './run-lists.test-util.js';
import { dimRuns } from './runs.js';

describe('composeRuns', () => {
  it('selects from a selection', () => {
    fc.assert(
      fc.property(positions(150), positions(60), (outer, inner) => {
        const within = inner.filter((i) => i < outer.length);
        const composed = composeRuns(holding(outer), holding(within));
        expect(composed).toEqual(holding(within.map((i) => outer[i]!)));
      }),
      { numRuns: 500 },
    );
  });

  it('refuses periodic patterns that would need millions of runs', () => {
    const outer = dimRuns([{ start: 0, length: 64, stride: 128, count: 2 ** 32 }]);
    const inner = dimRuns([{ start: 0, length: 128, stride: 256, count: 2 ** 30 }]);
    expect(() => composeRuns(outer, inner)).toThrow(/more than 1048576 runs/);
  });
});
