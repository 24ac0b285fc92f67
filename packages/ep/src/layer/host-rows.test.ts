// SPDX-License-Identifier: Apache-2.0
// Host experts find the rows of each expert in every layout, and weigh and sum their results in top-k order.

import { type Communicator, fromFloat64, localWorld, toFloat64, type World } from '@nccl-ext/core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { allocateTensor, type EpTensor } from '../tensor/tensor.js';
import { viewTensor } from '../tensor/view-tensor.js';
import type { ExpertCall } from './expert-layer.js';
import { combineResults } from './host-results.js';
import { assignRows, gatherRows } from './host-rows.js';

const hidden = 8;
let world: World;
let comm: Communicator;
beforeAll(async () => {
  world = await localWorld({ ranks: 1, backend: 'embedded', workers: 1 });
  comm = world.ranks[0]!;
});
afterAll(() => world.dispose());

function filled<D extends 'i32' | 'f32'>(
  dtype: D,
  shape: readonly number[],
  values: readonly number[],
): EpTensor<D> {
  const made = allocateTensor(comm, dtype, shape);
  (viewTensor<'i32' | 'f32'>(made) as Int32Array | Float32Array).set(values);
  return made;
}

/** bf16 rows; row r is filled with r + 1. */
function rowsOf(...shape: number[]): EpTensor {
  const made = allocateTensor(comm, 'bf16', [...shape, hidden]);
  const count = shape.reduce((a, b) => a * b);
  const values = Array.from({ length: count * hidden }, (_, i) => Math.floor(i / hidden) + 1);
  made.buffer.view('u8').set(fromFloat64('bf16', values));
  return made;
}

function run(call: Omit<ExpertCall, 'stream' | 'localExperts' | 'out'>): {
  seen: number[][];
  first: number[];
} {
  const out = allocateTensor(comm, 'bf16', call.tokens.shape);
  out.buffer.view('u8').fill(0);
  const whole = { ...call, stream: comm.createStream(), localExperts: [4, 5], out };
  const assigned = assignRows(whole);
  const results = assigned.rowsOf.map((rows, e) => gatherRows(call.tokens, rows).map((x) => x * 10 ** e));
  combineResults(whole, assigned, results);
  const values = toFloat64('bf16', out.buffer.view('u8'));
  return {
    seen: assigned.rowsOf.map((rows) => [...rows]),
    first: Array.from({ length: values.length / hidden }, (_, row) => values[row * hidden]!),
  };
}

describe('host experts', () => {
  it('take compact slabs of expert-major, unweighted', () => {
    const counts = filled('i32', [2], [1, 2]);
    const { seen, first } = run({ layout: 'expert-major', tokens: rowsOf(2, 3), counts });
    expect(seen).toEqual([[0], [3, 4]]);
    expect(first).toEqual([1, 0, 0, 40, 50, 0]);
  });

  it('take zones of packed, weighted', () => {
    const counts = filled('i32', [2], [0, 2]);
    const offsets = filled('i32', [2], [99, 0]);
    const topkWeights = filled('f32', [4], [0.5, 2, 7, 7]);
    const { seen, first } = run({ layout: 'packed', tokens: rowsOf(4), counts, offsets, topkWeights });
    expect(seen).toEqual([[], [0, 1]]);
    expect(first).toEqual([5, 40, 0, 0]);
  });

  it('sum the experts of flat rows in top-k order', () => {
    const topkIdx = filled('i32', [3, 2], [1, 0, 0, -1, 0, 0]);
    const topkWeights = filled('f32', [3, 2], [0.5, 2, 3, 0, 9, 9]);
    const total = filled('i32', [1], [2]);
    const { seen, first } = run({ layout: 'flat', tokens: rowsOf(3), topkIdx, topkWeights, total });
    expect(seen).toEqual([[0, 1], [0]]);
    expect(first).toEqual([0.5 * 10 + 2, 6, 0]);
  });

  it('take the slabs of rank-major by their source', () => {
    const topkIdx = filled('i32', [2, 2, 1], [0, 0, 1, 0]);
    const topkWeights = filled('f32', [2, 2, 1], [1, 1, 2, 1]);
    const sourceCounts = filled('i32', [2], [1, 1]);
    const { seen, first } = run({
      layout: 'rank-major',
      tokens: rowsOf(2, 2),
      topkIdx,
      topkWeights,
      sourceCounts,
    });
    expect(seen).toEqual([[0], [2]]);
    expect(first).toEqual([1, 0, 60, 0]);
  });

  it('refuse results of another size', () => {
    const tokens = rowsOf(2, 3);
    const call = {
      layout: 'expert-major',
      tokens,
      counts: filled('i32', [2], [1, 0]),
      stream: comm.createStream(),
      localExperts: [4, 5],
      out: tokens,
    } as const;
    const assigned = assignRows(call);
    const wrong = [new Float32Array(3), new Float32Array(0)];
    expect(() => combineResults(call, assigned, wrong)).toThrow(
      /Expert 4 must return a Float32Array of 8 values/,
    );
  });
});
