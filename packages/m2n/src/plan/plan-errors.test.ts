// SPDX-License-Identifier: Apache-2.0
// What cannot be planned is refused with a code, the tensor or rank, and what is allowed.

import { type DType, dimRuns, layout, mesh, NcclExtError, ranges, shard, singleDomain } from '@nccl-ext/core';
import { describe, expect, it } from 'vitest';
import { createPlan } from './create-plan.js';
import { patternOfBoxes } from './pattern-of-boxes.js';
import { type PartInput, sidePattern } from './side-pattern.js';

const at = (rank: number, shape: readonly number[] = [4], dtype: DType = 'f32') =>
  layout({ shape, dtype, mesh: mesh({}, { startRank: rank }), placements: {} });

function errorOf(run: () => unknown): NcclExtError {
  try {
    run();
  } catch (error) {
    if (NcclExtError.is(error)) return error;
    throw error;
  }
  throw new Error('nothing was thrown');
}

describe('createPlan refuses', () => {
  it.each(['source', 'destination'])('a tensor without a %s', (field) => {
    const tensor = { name: 'w', source: at(0), destination: at(1), [field]: undefined };
    const error = errorOf(() => createPlan({ tensors: [tensor as never] }));
    expect([error.code, error.field]).toEqual(['ERR_INVALID_ARGUMENT', `tensors[0].${field}`]);
  });

  it('global shapes that differ', () => {
    const error = errorOf(() =>
      createPlan({ tensors: [{ name: 'w', source: at(0), destination: at(1, [5]) }] }),
    );
    expect([error.code, error.field]).toEqual(['ERR_SHAPE_MISMATCH', 'w']);
    expect(error.message).toContain('w is [4] at the source and [5] at the destination');
  });

  it('dtypes that do not convert', () => {
    for (const [from, to] of [
      ['i32', 'f32'],
      ['f32', 'i32'],
      ['u8', 'i8'],
      ['f4e2m1x2', 'f8e4m3'],
    ] as const) {
      const request = { tensors: [{ name: 'w', source: at(0, [4], from), destination: at(1, [4], to) }] };
      expect(errorOf(() => createPlan(request)).code).toBe('ERR_CAST');
    }
  });

  it('elements that nobody has, naming the first of them', () => {
    const gap = layout({
      shape: [8, 4],
      dtype: 'f32',
      mesh: mesh({ tp: 2 }),
      placements: {
        tp: shard(
          0,
          ranges([
            [0, 3],
            [5, 8],
          ]),
        ),
      },
    });
    const error = errorOf(() =>
      createPlan({ tensors: [{ name: 'w', source: gap, destination: at(2, [8, 4]) }] }),
    );
    expect([error.code, error.rank]).toEqual(['ERR_COVERAGE', 2]);
    expect(error.message).toContain('w[3:5][0:4] has no source, but rank 2 wants it');
  });

  it('names a hole inside boxes', () => {
    const boxes = [
      { rank: 0, start: [0, 0], size: [2, 4] },
      { rank: 1, start: [2, 0], size: [2, 1] },
      { rank: 1, start: [2, 3], size: [1, 1] },
    ];
    const source = [{ pattern: patternOfBoxes({ dtype: 'u8', shape: [4, 4], boxes }), storage: 'w' }];
    const error = errorOf(() =>
      createPlan({ tensors: [{ name: 'w', source, destination: at(2, [4, 4], 'u8') }] }),
    );
    expect(error.message).toContain('w[2:3][1:3] has no source');
  });

  it('plans when nobody wants the hole', () => {
    const half = (rank: number) => [
      {
        pattern: patternOfBoxes({ dtype: 'u8', shape: [4], boxes: [{ rank, start: [0], size: [2] }] }),
        storage: 'w',
      },
    ];
    expect(
      createPlan({ tensors: [{ name: 'w', source: half(0), destination: half(1) }] }).totals.wireBytes,
    ).toBe(2);
  });

  it('repeated names', () => {
    const w = { name: 'w', source: at(0), destination: at(1) };
    const error = errorOf(() => createPlan({ tensors: [{ ...w, name: 'v' }, w, w] }));
    expect([error.code, error.field]).toEqual(['ERR_INVALID_ARGUMENT', 'tensors[2].name']);
    expect(error.message).toContain('tensors[2] and tensors[1] are both called "w"');
  });

  it('ranks outside the world', () => {
    const tensors = [{ name: 'w', source: at(0), destination: at(5) }];
    const error = errorOf(() => createPlan({ tensors, worldSize: 4 }));
    expect([error.code, error.rank]).toEqual(['ERR_INVALID_ARGUMENT', 5]);
    expect(error.message).toContain('Rank 5 holds w, but the world has the ranks 0 to 3');
    expect(errorOf(() => createPlan({ tensors, worldSize: 0 })).field).toBe('worldSize');
    expect(errorOf(() => createPlan({ tensors, worldSize: 2.5 })).field).toBe('worldSize');
  });

  it('a topology that lacks ranks', () => {
    const tensors = [{ name: 'w', source: at(0), destination: at(5) }];
    expect(errorOf(() => createPlan({ tensors, topology: singleDomain(4) })).code).toBe('ERR_TOPOLOGY');
    expect(createPlan({ tensors, topology: singleDomain(9) }).worldSize).toBe(6);
  });

  it('a cache of negative size, and ranks that no program is for', () => {
    const tensors = [{ name: 'w', source: at(0), destination: at(1) }];
    expect(errorOf(() => createPlan({ tensors, cacheEntries: -1 })).field).toBe('cacheEntries');
    const plan = createPlan({ tensors });
    for (const rank of [-1, 2, 0.5]) {
      expect(errorOf(() => plan.program(rank)).field).toBe('rank');
      expect(errorOf(() => plan.sourceTensorsOf(rank)).field).toBe('rank');
    }
  });
});

describe('sidePattern refuses', () => {
  const whole = dimRuns([{ start: 0, length: 4 }]);
  const refusal = (part: Partial<PartInput>): string | undefined => {
    const parts = [{ dims: [whole], ranks: [0], ...part }];
    return errorOf(() => sidePattern({ dtype: 'u8', shape: [4], parts })).field;
  };

  it('parts that do not fit, and what is no rank, offset or stride', () => {
    expect(refusal({ dims: [] })).toBe('parts[0].dims');
    expect(refusal({ dims: [dimRuns([{ start: 2, length: 4 }])] })).toBe('parts[0].dims[0]');
    expect(refusal({ ranks: [] })).toBe('parts[0].ranks');
    expect(refusal({ ranks: [0, -1] })).toBe('parts[0].ranks[1]');
    expect(refusal({ byteOffset: 1.5 })).toBe('parts[0].byteOffset');
    expect(refusal({ byteStrides: [1, 1] })).toBe('parts[0].byteStrides');
    expect(refusal({ byteStrides: [-1] })).toBe('parts[0].byteStrides[0]');
    expect(errorOf(() => sidePattern({ dtype: 'u9' as 'u8', shape: [4], parts: [] })).field).toBe('dtype');
    expect(errorOf(() => sidePattern({ dtype: 'u8', shape: [-4], parts: [] })).field).toBe('shape[0]');
  });

  it('runs that dimRuns() would not make', () => {
    const run = { start: 0, length: 2, stride: 2, count: 1, local: 0 };
    const lists = [
      { extent: 2, runs: [{ ...run, local: 1 }] },
      { extent: 3, runs: [run] },
      {
        extent: 4,
        runs: [
          { ...run, start: 2 },
          { ...run, local: 2 },
        ],
      },
      { extent: 4, runs: [{ ...run, stride: 1, count: 2 }] },
    ];
    for (const dim of lists) expect(refusal({ dims: [dim] })).toBe('parts[0].dims[0]');
  });

  it('boxes outside the shape', () => {
    const box = { rank: 3, start: [2], size: [3] };
    const error = errorOf(() => patternOfBoxes({ dtype: 'u8', shape: [4], boxes: [box] }));
    expect([error.code, error.rank, error.field]).toEqual(['ERR_LAYOUT', 3, 'boxes[0]']);
  });
});
