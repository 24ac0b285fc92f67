// SPDX-License-Identifier: Apache-2.0
// A transfer between two manifests moves every piece to its place, or names what the sides do not agree on.

import { describe, expect, it } from 'vitest';
import { createPlan } from '../plan/create-plan.js';
import { refusal } from '../refusal.test-util.js';
import { joinSides } from './join-sides.js';
import type { Manifest, ManifestTensor } from './manifest-schema.js';
import { manifestSide } from './manifest-side.js';
import { box, manifest, one, whole } from './small-manifests.test-util.js';

describe('a transfer between manifests', () => {
  // Two trainer ranks hold rows of q and k; one engine rank wants them fused, the columns of w behind them in one allocation.
  const trainer = manifest(
    [0, 1].map((rank) => ({
      rank,
      tensors: [
        { ...whole('q', [2, 4]), pieces: [{ source: 'q', global: box([rank * 2, 0], [2, 4]) }] },
        { ...whole('k', [1, 4]), pieces: [{ source: 'k', global: box([rank, 0], [1, 4]) }] },
        { ...whole('w', [3, 4]), pieces: [{ source: 'w', global: box([0, rank * 4], [3, 4]) }] },
      ],
    })),
  );
  const engine = one([
    {
      name: 'qk',
      dtype: 'bf16',
      shape: [6, 4],
      allocation: 'pool',
      offset: 16,
      pieces: [
        { source: 'q', global: box([0, 0], [4, 4]), local: box([0, 0], [4, 4]) },
        { source: 'k', global: box([0, 0], [2, 4]), local: box([4, 0], [2, 4]) },
      ],
    },
    {
      name: 'w',
      dtype: 'bf16',
      shape: [3, 8],
      strides: [32, 2],
      allocation: 'pool',
      offset: 64,
      pieces: [{ source: 'w', global: box([0, 0], [3, 8]) }],
    },
  ]);

  it('moves every piece to its place', () => {
    const joined = joinSides(
      manifestSide(trainer, 'source'),
      manifestSide(engine, 'destination', { firstRank: 2 }),
    );
    expect(joined.worldSize).toBe(3);
    expect(joined.unused).toEqual([]);
    const plan = createPlan(joined);
    expect(plan.totals.wireBytes).toBe(2 * (16 + 8 + 24));
    const [pool, ...others] = joined.destinationStorages(2);
    expect(others).toEqual([]);
    expect(pool).toMatchObject({ storage: 'pool', bytes: 144, shape: [144], dtype: 'u8' });
    expect(pool!.pieces.map(({ name, byteOffset, part }) => [name, byteOffset, part.byteStrides])).toEqual([
      ['q', 16, [8, 2]],
      ['k', 48, [8, 2]],
      ['w', 64, [32, 2]],
    ]);
    expect(joined.sourceStorages(1).map(({ storage, bytes }) => [storage, bytes])).toEqual([
      ['q', 16],
      ['k', 8],
      ['w', 24],
    ]);
  });

  it('infers extents from both sides, or takes the declared ones', () => {
    const larger = { ...trainer, globals: { q: [6, 4] } };
    const shapeOf = (source: Manifest) =>
      joinSides(manifestSide(source, 'source'), manifestSide(engine, 'destination', { firstRank: 2 }))
        .tensors[0]!.source[0]!.pattern.shape;
    expect(shapeOf(trainer)).toEqual([4, 4]);
    expect(shapeOf(larger)).toEqual([6, 4]);
  });

  it('names what the destination does not want', () => {
    const joined = joinSides(
      manifestSide(trainer, 'source'),
      manifestSide(one([whole('q', [4, 4])]), 'destination', { firstRank: 2 }),
    );
    expect(joined.unused).toEqual(['k', 'w']);
  });

  it('stacks experts: a local dimension of size 1 has no global counterpart', () => {
    const experts = one([
      {
        name: 'w13',
        dtype: 'bf16',
        shape: [2, 3, 4],
        pieces: ['e0', 'e1'].map((source, i) => ({
          source,
          global: box([0, 0], [3, 4]),
          local: box([i, 0, 0], [1, 3, 4]),
        })),
      },
    ]);
    const source = one([whole('e0', [3, 4]), whole('e1', [3, 4])]);
    const joined = joinSides(
      manifestSide(source, 'source'),
      manifestSide(experts, 'destination', { firstRank: 1 }),
    );
    expect(joined.destinationStorages(1)[0]!.pieces.map(({ byteOffset }) => byteOffset)).toEqual([0, 24]);
    expect(createPlan(joined).totals.wireBytes).toBe(48);
  });

  it('an alias is another name at the source, and nothing more to write at the destination', () => {
    const tied = (pieces: ManifestTensor['pieces']) =>
      one([
        whole('embed', [4, 2]),
        { ...whole('head', [4, 2]), allocation: 'embed', alias: 'embed', pieces },
      ]);
    const source = tied([{ source: 'head', global: box([0, 0], [4, 2]) }]);
    const apart = one([whole('embed', [4, 2]), whole('head', [4, 2])]);
    const both = joinSides(
      manifestSide(source, 'source'),
      manifestSide(apart, 'destination', { firstRank: 1 }),
    );
    expect(createPlan(both).totals.wireBytes).toBe(32);
    for (const pieces of [undefined, source.ranks[0]!.tensors[1]!.pieces]) {
      const joined = joinSides(
        manifestSide(apart, 'source'),
        manifestSide(tied(pieces), 'destination', { firstRank: 1 }),
      );
      expect(joined.tensors.map(({ name }) => name)).toEqual(['embed']);
      expect(joined.unused).toEqual(['head']);
    }
  });

  it('tensors that lie alike share their pattern', () => {
    const source = one([whole('a', [4]), whole('b', [4])]);
    const { tensors } = joinSides(
      manifestSide(source, 'source'),
      manifestSide(source, 'destination', { firstRank: 1 }),
    );
    expect(tensors[0]!.source[0]!.pattern).toBe(tensors[1]!.source[0]!.pattern);
  });
});

describe('refused, with rank, tensor and field', () => {
  const join2 = (source: Manifest, destination: Manifest) =>
    refusal(() =>
      joinSides(manifestSide(source, 'source'), manifestSide(destination, 'destination', { firstRank: 4 })),
    );
  it('what no source has', () => {
    const missing = join2(one([whole('weight', [4])]), one([whole('wieght', [4])]));
    expect(missing.code).toBe('ERR_COVERAGE');
    expect(missing.message).toMatch(
      /rank 0, tensor "wieght" \(ranks\[0\]\.tensors\[0\]\.pieces\[0\]\): wants "wieght".*"weight"/,
    );
    const hole = one([
      { ...whole('t', [2, 3]), pieces: [{ source: 't', global: box([0, 0], [2, 3]) }] },
      { ...whole('u', [2, 3]), pieces: [{ source: 't', global: box([2, 1], [2, 3]) }] },
    ]);
    const part = join2(hole, one([whole('t', [4, 4])]));
    expect(part.code).toBe('ERR_COVERAGE');
    expect(part.message).toMatch(/wants t\[0:4, 0:4\], of which no source rank has \[.*\]/);
    expect(join2(one([]), one([whole('t', [1])])).message).toMatch(/the source has no tensors/);
  });

  it('sides that mean different tensors', () => {
    const error = join2(
      one([whole('t', [4])], { globals: { t: [8] } }),
      one([whole('t', [4])], { globals: { t: [4] } }),
    );
    expect(error.code).toBe('ERR_SHAPE_MISMATCH');
    expect(error.message).toMatch(/tensor "t": the source has \[8\], the destination \[4\]/);
    expect(join2(one([whole('t', [4])]), one([whole('t', [4, 1])])).code).toBe('ERR_SHAPE_MISMATCH');
  });
});
