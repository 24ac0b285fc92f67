// SPDX-License-Identifier: Apache-2.0
// Layouts whose shares are known: those of DTensor, scalars, empty tensors, pairs of floats, spectators, and JSON.

import { describe, expect, it } from 'vitest';
import { mesh } from '../mesh/device-mesh.js';
import { type Layout, layout } from './layout.js';
import { shard } from './placement.js';

describe('layout', () => {
  it('chunks as DTensor does', () => {
    const extents = (subject: Layout): number[] =>
      subject.mesh.ranks.map((rank) => subject.localShape(rank)![0]!);
    const of = (axes: Record<string, number>, extent: number): Layout =>
      layout({
        shape: [extent],
        dtype: 'u8',
        mesh: mesh(axes),
        placements: Object.keys(axes).map(() => shard(0)),
      });
    expect(extents(of({ a: 4 }, 10))).toEqual([3, 3, 3, 1]);
    expect(extents(of({ a: 2, b: 2 }, 10))).toEqual([3, 2, 3, 2]);
    expect(extents(of({ a: 4 }, 5))).toEqual([2, 2, 1, 0]);
    expect(extents(of({ a: 4 }, 1))).toEqual([1, 0, 0, 0]);
    expect(extents(of({ a: 3 }, 0))).toEqual([0, 0, 0]);
  });

  it('holds scalars, empty tensors and f4 pairs', () => {
    const scalar = layout({ shape: [], dtype: 'f64', mesh: mesh({ tp: 2 }), placements: {} });
    expect([scalar.elements, scalar.bytes, scalar.localBytes(1)]).toEqual([1, 8, 8]);
    expect(scalar.toGlobal(1, [])).toEqual([]);
    expect(scalar.holders([])).toEqual([0, 1]);
    const empty = layout({ shape: [2 ** 52, 0, 2 ** 52], dtype: 'f64', mesh: mesh({}), placements: [] });
    expect([empty.elements, empty.bytes, empty.localBytes(0)]).toEqual([0, 0, 0]);
    const packed = layout({
      shape: [6, 512],
      dtype: 'f4e2m1x2',
      mesh: mesh({ tp: 2 }),
      placements: { tp: shard(-1) },
    });
    expect([packed.elements, packed.bytes, packed.localBytes(0)]).toEqual([3072, 3072, 1536]);
  });

  it('gives spectators nothing', () => {
    const subject = layout({ shape: [8], dtype: 'f32', mesh: mesh({ tp: 2 }), placements: { tp: shard(0) } });
    expect(subject.runs(2)).toBeUndefined();
    expect(subject.localShape(2)).toBeUndefined();
    expect(subject.localBytes(2)).toBe(0);
  });

  it('goes to JSON in normal form', () => {
    const subject = layout({
      shape: [8, 4],
      dtype: 'f32',
      mesh: mesh({ dp: 2, tp: 2 }),
      placements: { tp: shard(-1) },
    });
    expect(JSON.parse(JSON.stringify(subject))).toEqual({
      shape: [8, 4],
      dtype: 'f32',
      mesh: {
        axes: [
          { name: 'dp', size: 2 },
          { name: 'tp', size: 2 },
        ],
        startRank: 0,
      },
      placements: [{ kind: 'replicate' }, { kind: 'shard', dim: 1, split: { kind: 'chunk' } }],
    });
    expect(Object.isFrozen(subject)).toBe(true);
  });
});
