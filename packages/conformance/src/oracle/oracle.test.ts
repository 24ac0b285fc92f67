// SPDX-License-Identifier: Apache-2.0
// The oracle against core's layouts and against loops that a reader believes at sight.

import {
  blockCyclic,
  castArray,
  decodeFloat,
  dtypeBytes,
  dtypes,
  isFloatDType,
  type Placement,
  replicate,
  shard,
} from '@nccl-ext/core';
import { describe, expect, it } from 'vitest';
import { allCases } from '../cases/all-cases.js';
import type { SideSpec, TensorSpec } from '../cases/case.js';
import { grid, line } from '../cases/side.js';
import { layoutOf } from '../run/plan-of.js';
import { castValues } from './cast-values.js';
import { writeElements } from './element-values.js';
import { heldIntervals, ranksOf } from './held-intervals.js';
import { blockKeys, mix32 } from './mix.js';
import { Shard } from './shard.js';

const values = { tensor: 3, epoch: 5, pass: 0 };

function shardOf(shape: readonly number[], side: SideSpec, rank: number): Shard {
  return new Shard(shape, heldIntervals(shape, side, rank)!);
}

function elementsOf(
  shape: readonly number[],
  side: SideSpec,
  rank: number,
  dtype: 'u32' | 'u64' | 'u8' | 'bf16',
): Uint8Array {
  const part = shardOf(shape, side, rank);
  const out = new Uint8Array(part.elements * dtypeBytes(dtype));
  writeElements(out, 'source', { source: dtype, destination: dtype }, values, part);
  return out;
}

describe('held intervals', () => {
  it('say what core says, for every side of every case', () => {
    const seen = new Set<string>();
    for (const { tensors } of allCases().filter((candidate) => candidate.kind === 'move')) {
      for (const { shape, dtype, source, destination } of tensors) {
        if (shape.reduce((product, extent) => product * extent, 1) > 2 ** 20) continue;
        for (const side of [source, destination]) {
          const key = JSON.stringify([shape, side]);
          if (seen.has(key)) continue;
          seen.add(key);
          requireSameAsCore(shape, side, layoutOf(shape, dtype, side));
        }
      }
    }
    expect(seen.size).toBeGreaterThan(200);
  });

  it('follow torch.chunk: 10 over 4 is 3, 3, 3, 1', () => {
    const lengths = [0, 1, 2, 3].map((rank) => shardOf([10], line(4, shard(0)), rank).elements);
    expect(lengths).toEqual([3, 3, 3, 1]);
  });

  it('nest left to right: 10 over 2 x 2 is 3, 2, 3, 2', () => {
    const side = grid(2, 2, [shard(0), shard(0)]);
    expect([0, 1, 2, 3].map((rank) => shardOf([10], side, rank).elements)).toEqual([3, 2, 3, 2]);
  });

  it('know who is not in the mesh', () => {
    expect(heldIntervals([4], line(2, shard(0), 3), 2)).toBeUndefined();
    expect(ranksOf(line(2, shard(0), 3))).toEqual([3, 4]);
  });
});

/** Global index of every local element, one by one. */
function requireSameAsCore(
  shape: readonly number[],
  side: SideSpec,
  layout: ReturnType<typeof layoutOf>,
): void {
  for (const rank of ranksOf(side)) {
    const part = shardOf(shape, side, rank);
    expect(part.shape).toEqual(layout.localShape(rank));
    const step = Math.max(1, Math.floor(part.elements / 50));
    for (let local = 0; local < part.elements; local += step) {
      expect(part.globalIndexOf(local)).toEqual(layout.toGlobal(rank, unflatten(local, part.shape)));
    }
  }
}

function unflatten(position: number, shape: readonly number[]): number[] {
  const index = new Array<number>(shape.length);
  let rest = position;
  for (let d = shape.length - 1; d >= 0; d--) {
    index[d] = rest % shape[d]!;
    rest = Math.floor(rest / shape[d]!);
  }
  return index;
}

describe('values', () => {
  it.each(['u8', 'bf16', 'u32', 'u64'] as const)(
    'of a shard are those of its global elements: %s',
    (dtype) => {
      const shape = [6, 5, 7];
      const bytes = dtypeBytes(dtype);
      const whole = elementsOf(shape, line(1, replicate()), 0, dtype);
      const placements: Placement[] = [shard(2, blockCyclic(2)), shard(0)];
      const side = grid(2, 3, [placements[0]!, placements[1]!]);
      for (const rank of ranksOf(side)) {
        const part = shardOf(shape, side, rank);
        const local = elementsOf(shape, side, rank, dtype);
        for (let i = 0; i < part.elements; i++) {
          const linear = part.globalIndexOf(i).reduce((sum, at, d) => sum * shape[d]! + at, 0);
          const expected = whole.slice(linear * bytes, (linear + 1) * bytes);
          expect(local.slice(i * bytes, (i + 1) * bytes)).toEqual(expected);
        }
      }
    },
  );

  it('of a part of a shard are the part of its values', () => {
    const part = shardOf([6, 10], line(2, shard(1, blockCyclic(3))), 1);
    const pair = { source: 'u16', destination: 'u16' } as const;
    const whole = new Uint16Array(part.elements);
    writeElements(new Uint8Array(whole.buffer), 'source', pair, values, part);
    for (let first = 0; first < part.elements; first++) {
      const some = new Uint16Array(Math.min(7, part.elements - first));
      writeElements(new Uint8Array(some.buffer), 'source', pair, values, part, first);
      expect([...some]).toEqual([...whole.subarray(first, first + some.length)]);
    }
  });

  it('go on beyond 2^32 elements, with other keys', () => {
    const start = 2 ** 32 - 4;
    const part = new Shard([2 ** 33], [[{ start, length: 8 }]]);
    const out = new Uint32Array(8);
    writeElements(new Uint8Array(out.buffer), 'source', { source: 'u32', destination: 'u32' }, values, part);
    const expected = Array.from({ length: 8 }, (_, i) => {
      const global = start + i;
      const [a, b] = blockKeys(values, Math.floor(global / 2 ** 32));
      return mix32(global % 2 ** 32, a, b);
    });
    expect([...out]).toEqual(expected);
    expect(new Set(out).size).toBe(8);
  });

  it('tell any two tensors, epochs and places apart', () => {
    const seen = new Set<string>();
    for (let tensor = 0; tensor < 8; tensor++) {
      for (let epoch = 0; epoch < 8; epoch++) {
        const [a, b] = blockKeys({ tensor, epoch, pass: 0 }, 0);
        for (let place = 0; place < 64; place++) {
          seen.add(Array.from({ length: 2 }, (_, i) => mix32(2 * place + i, a, b)).join());
        }
      }
    }
    expect(seen.size).toBe(8 * 8 * 64);
  });

  it('of 1-byte types differ from pass to pass', () => {
    const part = shardOf([256], line(1, replicate()), 0);
    const of = (pass: number): Uint8Array => {
      const out = new Uint8Array(256);
      writeElements(out, 'source', { source: 'i8', destination: 'i8' }, { ...values, pass }, part);
      return out;
    };
    expect(of(0)).not.toEqual(of(1));
    const pairs = new Set(Array.from(of(0), (byte, i) => byte * 256 + of(1)[i]!));
    expect(pairs.size).toBeGreaterThan(250);
  });

  it('of bool are 0 and 1', () => {
    const part = shardOf([256], line(1, replicate()), 0);
    const out = new Uint8Array(256);
    writeElements(out, 'source', { source: 'bool', destination: 'bool' }, values, part);
    expect(new Set(out)).toEqual(new Set([0, 1]));
  });

  it('of a converted destination are the conversions of its source', () => {
    const side = line(3, shard(1));
    const part = shardOf([9, 11], side, 2);
    for (const to of dtypes.filter(isFloatDType)) {
      const before = new Uint8Array(part.elements * 4);
      const after = new Uint8Array(part.elements * dtypeBytes(to));
      const pair = { source: 'f32', destination: to } as const;
      writeElements(before, 'source', pair, values, part);
      writeElements(after, 'destination', pair, values, part);
      const expected = new Uint8Array(after.length);
      castArray('f32', before, to, expected);
      expect(after).toEqual(expected);
    }
  });
});

describe('values that convert', () => {
  it('have ordinary magnitudes, ties and the ends of the number line', () => {
    const castValue = castValues('f32');
    const drawn = Array.from({ length: 20_000 }, (_, i) => {
      const [low] = castValue(mix32(i, 1, 2), mix32(i, 3, 4));
      return decodeFloat('f32', low);
    });
    const ordinary = drawn.filter((value) => Math.abs(value) >= 2 ** -4 && Math.abs(value) < 16);
    expect(ordinary.length).toBeGreaterThan(16_000);
    // Exactly between two neighbours of bf16, whose significand has 8 bits.
    const ties = drawn.filter((value) => {
      const scaled = Math.abs(value) / 2 ** (Math.floor(Math.log2(Math.abs(value))) - 7);
      return scaled % 1 === 0.5;
    });
    expect(ties.length).toBeGreaterThan(100);
    for (const edge of [-0, Number.POSITIVE_INFINITY, Number.NaN, 448, -57_344, 2 ** -149]) {
      expect(drawn.some((value) => Object.is(value, edge))).toBe(true);
    }
  });
});

describe('shards', () => {
  it('of a scalar hold one element', () => {
    const side: TensorSpec['source'] = line(2, replicate());
    const part = shardOf([], side, 1);
    expect(part.elements).toBe(1);
    expect(part.globalIndexOf(0)).toEqual([]);
    const runs: number[][] = [];
    part.forEachRun(0, 1, (...run) => runs.push(run));
    expect(runs).toEqual([[0, 0, 1]]);
  });

  it('of an empty tensor hold nothing', () => {
    const part = shardOf([3, 0, 5], line(2, shard(0)), 0);
    expect(part.elements).toBe(0);
    part.forEachRun(0, 0, () => expect.unreachable());
  });
});
