// SPDX-License-Identifier: Apache-2.0
// JSON documents become meshes and layouts, and come back; what is malformed is named.

import { describe, expect, it } from 'vitest';
import { NcclExtError } from '../errors/nccl-ext-error.js';
import { mesh } from '../mesh/device-mesh.js';
import { layout } from './layout.js';
import { blockCyclic, interleaved, ranges, replicate, shard, sizes, strided } from './placement.js';
import { layoutFromJSON, meshFromJSON } from './schema.js';

const there = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

describe('meshFromJSON', () => {
  it('reads what toJSON writes', () => {
    for (const m of [
      mesh({}),
      mesh({ dp: 2, tp: 2 }, { startRank: 4 }),
      mesh({ tp: 3 }, { ranks: [5, 1, 9] }),
    ]) {
      expect(meshFromJSON(there(m)).toJSON()).toEqual(m.toJSON());
    }
  });

  it('reads axes by name', () => {
    expect(meshFromJSON({ axes: { dp: 2, tp: 4 }, startRank: 8 }).coordinatesOf(13)).toEqual([1, 1]);
  });

  it.each<[string, unknown, RegExp]>([
    ['no object', 4, /mesh is malformed/],
    ['no axes', {}, /axes/],
    ['a size as text', { axes: { tp: '4' } }, /expected number, received string[\s\S]*axes\.tp/],
    ['a size as text in a list', { axes: [{ name: 'tp', size: '4' }] }, /axes\[0\]\.size/],
    ['an unknown key', { axes: {}, first: 3 }, /first/],
    ['size 0', { axes: { tp: 0 } }, /axes\.tp must be an integer of at least 1/],
    ['duplicates', { axes: { tp: 2 }, ranks: [1, 1] }, /ranks\[1\] is 1/],
  ])('refuses %s', (_, json, message) => {
    expect(() => meshFromJSON(json)).toThrow(message);
    try {
      meshFromJSON(json);
    } catch (error) {
      expect(NcclExtError.is(error, 'ERR_MESH')).toBe(true);
    }
  });
});

describe('layoutFromJSON', () => {
  it('reads what toJSON writes, for every split', () => {
    const axes = { a: 1, b: 2, c: 2, d: 2, e: 2, f: 2, g: 2, h: 2 };
    const subject = layout({
      shape: [8, 8, 8, 8, 8, 8, 8],
      dtype: 'bf16',
      mesh: mesh(axes, { startRank: 3 }),
      placements: [
        replicate(),
        shard(0),
        shard(1, 'even'),
        shard(2, sizes([8, 0])),
        shard(
          3,
          ranges([
            [0, 8],
            [2, 4],
          ]),
        ),
        shard(4, strided(4)),
        shard(5, interleaved([4, 2, 2])),
        shard(6, blockCyclic(3)),
      ],
    });
    expect(layoutFromJSON(there(subject)).toJSON()).toEqual(subject.toJSON());
  });

  it('reads short forms', () => {
    const subject = layoutFromJSON({
      shape: [8, 4],
      dtype: 'f32',
      mesh: { axes: { dp: 2, tp: 2 } },
      placements: { dp: { kind: 'shard', dim: 0, split: 'even' }, tp: { kind: 'shard', dim: -1 } },
    });
    expect(subject.placements).toEqual([shard(0, 'even'), shard(1)]);
  });

  it.each<[string, object, string, RegExp]>([
    ['an unknown dtype', { dtype: 'fp32' }, 'ERR_LAYOUT', /layout is malformed[\s\S]*dtype/],
    ['a shape of text', { shape: ['8'] }, 'ERR_LAYOUT', /expected number, received string[\s\S]*shape\[0\]/],
    ['an unknown placement', { placements: { tp: { kind: 'rows' } } }, 'ERR_LAYOUT', /placements\.tp/],
    [
      'an unknown split',
      { placements: [{ kind: 'shard', dim: 0, split: 'rows' }] },
      'ERR_LAYOUT',
      /placements\[0\]\.split/,
    ],
    [
      'a split without its list',
      { placements: [{ kind: 'shard', dim: 0, split: { kind: 'sizes' } }] },
      'ERR_LAYOUT',
      /split\.sizes/,
    ],
    ['a bad mesh', { mesh: { axes: { tp: 0 } } }, 'ERR_MESH', /axes\.tp/],
    [
      'a placement that does not fit',
      { placements: { tp: { kind: 'shard', dim: 5 } } },
      'ERR_LAYOUT',
      /placements\.tp\.dim/,
    ],
  ])('refuses %s', (_, over, code, message) => {
    const json = { shape: [8], dtype: 'f32', mesh: { axes: { tp: 2 } }, placements: {}, ...over };
    let seen: unknown;
    try {
      layoutFromJSON(json);
    } catch (error) {
      seen = error;
    }
    expect((seen as NcclExtError).message).toMatch(message);
    expect((seen as NcclExtError).code).toBe(code);
  });
});
