// SPDX-License-Identifier: Apache-2.0
// Random meshes, placements, dtypes and topologies through the embedded backend, against the oracle. TEST_PROPERTY_RUNS sets how many.

import { env } from 'node:process';
import {
  blockCyclic,
  type DType,
  dtypes,
  interleaved,
  isFloatDType,
  localWorld,
  type Placement,
  ranges,
  replicate,
  type Split,
  shard,
  sizes,
  strided,
} from '@nccl-ext/core';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import type { M2nCase, SideSpec, StoredSpec, TensorSpec } from './cases/case.js';
import { moveCase } from './cases/side.js';
import { runCase } from './run/run-case.js';
import { WorldPool } from './run/world-pool.js';

const numRuns = Number(env.TEST_PROPERTY_RUNS ?? 60);
const ranks = 8;
const pool = new WorldPool((request) => localWorld({ ...request, backend: 'embedded', logLevel: 'error' }));
afterAll(() => pool.dispose());

/** Draws integers; smaller is simpler, so that failures shrink. */
type Draw = (least: number, most: number) => number;

describe('any move', () => {
  it('gives every destination the bytes of the oracle', { timeout: 600_000 }, async () => {
    const arbitrary = fc.gen().map((draw) => randomCase((min, max) => draw(fc.integer, { min, max })));
    await fc.assert(
      fc.asyncProperty(arbitrary, async (move) => {
        const { status, detail } = await runCase(pool, move);
        expect(status, `${detail}\n${JSON.stringify(move)}`).toBe('passed');
      }),
      { numRuns, interruptAfterTimeLimit: 590_000, markInterruptAsFailure: false },
    );
  });
});

function randomCase(draw: Draw): M2nCase {
  const fused = draw(0, 4) === 0;
  const dtype = dtypes[draw(0, dtypes.length - 1)]!;
  const tensors = list(draw(1, 3), () =>
    randomTensor(draw, fused ? { dtype, fusedIn: 'fused' } : { dtype: dtypes[draw(0, dtypes.length - 1)]! }),
  );
  const domain = [8, 4, 2, 3, 1][draw(0, 4)]!;
  return moveCase('meshes', 'random', ranks, tensors, {
    topology: {
      ranks: list(ranks, (rank) => ({
        node: Math.floor(rank / domain),
        domain: Math.floor(rank / domain),
        rail: rank % domain,
        device: rank % domain,
      })),
    },
    repeat: draw(1, 2),
    verify: draw(0, 1) === 1,
    ...(draw(0, 3) === 0 ? { capture: 'cold' } : {}),
  });
}

function randomTensor(
  draw: Draw,
  { dtype, fusedIn }: { readonly dtype: DType; readonly fusedIn?: string },
): TensorSpec {
  const shape = list(draw(0, 4), () => draw(0, 5) * draw(1, 4) + draw(0, 2));
  const floats: readonly DType[] = dtypes.filter(isFloatDType);
  const cast = fusedIn === undefined && isFloatDType(dtype) && draw(0, 1) === 1;
  const castTo = cast ? floats[draw(0, floats.length - 1)]! : dtype;
  const stored = (): StoredSpec => ({
    offset: draw(0, 5),
    ...(draw(0, 2) === 0 ? { padding: draw(1, 3) } : {}),
    ...(fusedIn === undefined || draw(0, 2) === 0 ? {} : { fusedIn }),
    ...(draw(0, 3) === 0 ? { copies: list(draw(1, 2), () => randomSide(draw, shape, false)) } : {}),
  });
  return {
    shape,
    dtype,
    ...(castTo === dtype ? {} : { castTo }),
    source: randomSide(draw, shape, true),
    destination: randomSide(draw, shape, false),
    sourceStored: stored(),
    destinationStored: stored(),
  };
}

/** `complete`: the mesh holds every element. */
function randomSide(draw: Draw, shape: readonly number[], complete: boolean): SideSpec {
  const axes: Record<string, number> = {};
  const placements: Record<string, Placement> = {};
  const split = new Set<number>();
  let size = 1;
  for (let axis = draw(0, 3); axis > 0; axis--) {
    const n = draw(1, Math.floor(ranks / size));
    size *= n;
    axes[`a${axis}`] = n;
    const dim = draw(-1, shape.length - 1);
    if (dim < 0) placements[`a${axis}`] = replicate();
    else {
      const kind = split.has(dim) ? nestedSplit(draw) : firstSplit(draw, shape[dim]!, n, complete);
      placements[`a${axis}`] = shard(dim, kind);
      split.add(dim);
    }
  }
  const pick = list(ranks, (rank) => rank);
  const chosen = list(size, () => pick.splice(draw(0, pick.length - 1), 1)[0]!);
  return { axes, ranks: chosen, placements };
}

/** Splits that take whatever extent earlier axes left. */
function nestedSplit(draw: Draw): Split {
  return draw(0, 1) === 0 ? { kind: 'chunk' } : blockCyclic(draw(1, 4));
}

function firstSplit(draw: Draw, extent: number, n: number, complete: boolean): Split {
  switch (draw(0, 5)) {
    case 1:
      return blockCyclic(draw(1, 5));
    case 2:
      return sizes(parts(draw, extent, n));
    case 3:
      return interleaved(parts(draw, extent, draw(1, 3)));
    case 4: {
      const divisors = list(Math.max(1, extent), (i) => i + 1).filter((d) => extent % d === 0);
      return strided(divisors[draw(0, divisors.length - 1)]!);
    }
    case 5:
      return ranges(complete ? overlapping(draw, extent, n) : anywhere(draw, extent, n));
    default:
      return { kind: 'chunk' };
  }
}

/** `count` numbers from 0 that sum to `total`. */
function parts(draw: Draw, total: number, count: number): readonly number[] {
  let left = total;
  return list(count, (i) => {
    const part = i === count - 1 ? left : draw(0, left);
    left -= part;
    return part;
  });
}

/** Ranges that cover the extent and may reach into each other. */
function overlapping(draw: Draw, extent: number, n: number): readonly (readonly [number, number])[] {
  let end = 0;
  return parts(draw, extent, n).map((size) => {
    const start = draw(0, end);
    end += size;
    return [start, end] as const;
  });
}

function anywhere(draw: Draw, extent: number, n: number): readonly (readonly [number, number])[] {
  return list(n, () => {
    const start = draw(0, extent);
    return [start, draw(start, extent)] as const;
  });
}

function list<T>(length: number, make: (index: number) => T): T[] {
  return Array.from({ length }, (_, index) => make(index));
}
