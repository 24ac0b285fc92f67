// SPDX-License-Identifier: Apache-2.0
// Folded runs keep their content, in one short form, however the pieces were cut.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { NcclExtError } from '../errors/nccl-ext-error.js';
import { expand, holding, periodic, positions } from './run-lists.test-util.js';
import { dimRuns } from './runs.js';

describe('dimRuns', () => {
  it('keeps content, stays canonical and as short as any greedy folding', () => {
    fc.assert(
      fc.property(positions(120), (list) => {
        const runs = holding(list);
        expect(expand(runs)).toEqual(list);
        expect(runs.extent).toBe(list.length);
        let local = 0;
        for (const run of runs.runs) {
          expect(run.local).toBe(local);
          expect(run.count === 1 ? run.stride === run.length : run.stride > run.length).toBe(true);
          local += run.length * run.count;
        }
      }),
    );
  });

  it('has one form for one content, however the pieces are cut', () => {
    const cut = fc.tuple(periodic(90), fc.infiniteStream(fc.boolean()));
    fc.assert(
      fc.property(cut, ([list, cuts]) => {
        const whole = holding(list);
        const pieces: { start: number; length: number; stride: number; count: number }[] = [];
        for (const run of whole.runs) {
          let left = { ...run };
          while (left.count > 1 && cuts.next().value) {
            pieces.push({ ...left, count: 1 });
            left = { ...left, start: left.start + left.stride, count: left.count - 1 };
          }
          pieces.push(left);
        }
        expect(dimRuns(pieces)).toEqual(whole);
      }),
    );
  });

  it('gives the first step to the earlier run when a progression follows', () => {
    // Elements 0, 10, 13, 16, 19 one by one or as 0 and a progression: the same form.
    const single = { start: 0, length: 1 };
    expect(dimRuns([single, { start: 10, length: 1, stride: 3, count: 4 }])).toEqual(
      holding([0, 10, 13, 16, 19]),
    );
  });

  it('joins what touches and drops what is empty', () => {
    expect(
      dimRuns([
        { start: 0, length: 4, stride: 4, count: 5 },
        { start: 99, length: 0 },
      ]).runs,
    ).toEqual([{ start: 0, length: 20, stride: 20, count: 1, local: 0 }]);
    const ragged = dimRuns([
      { start: 0, length: 2, stride: 6, count: 3 },
      { start: 14, length: 2, stride: 6, count: 3 },
    ]);
    expect(expand(ragged)).toEqual([0, 1, 6, 7, 12, 13, 14, 15, 20, 21, 26, 27]);
    expect(ragged.runs).toEqual([
      { start: 0, length: 2, stride: 6, count: 2, local: 0 },
      { start: 12, length: 4, stride: 4, count: 1, local: 4 },
      { start: 20, length: 2, stride: 6, count: 2, local: 8 },
    ]);
    expect(dimRuns([])).toEqual({ extent: 0, runs: [] });
  });

  it('refuses pieces that overlap or do not ascend', () => {
    for (const pieces of [
      [
        { start: 0, length: 3 },
        { start: 2, length: 1 },
      ],
      [
        { start: 5, length: 1 },
        { start: 0, length: 1 },
      ],
      [{ start: 0, length: 3, stride: 2, count: 2 }],
    ]) {
      expect(() => dimRuns(pieces)).toThrow(NcclExtError);
      expect(() => dimRuns(pieces)).toThrow(/ascend without overlap/);
    }
  });
});
