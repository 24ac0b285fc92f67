// SPDX-License-Identifier: Apache-2.0
// Meshes arrange arbitrary rank lists row-major and refuse what is no grid of distinct ranks.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { NcclExtError } from '../errors/nccl-ext-error.js';
import { DeviceMesh, mesh } from './device-mesh.js';

function errorOf(run: () => unknown): NcclExtError {
  try {
    run();
  } catch (error) {
    if (NcclExtError.is(error)) return error;
    throw error;
  }
  throw new Error('expected an error');
}

describe('mesh', () => {
  it('is row-major with the last axis fastest', () => {
    const m = mesh({ dp: 2, tp: 4 });
    expect(m.ranks).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
    expect(m.axes).toEqual([
      { name: 'dp', size: 2 },
      { name: 'tp', size: 4 },
    ]);
    expect(m.size).toBe(8);
    expect(m.coordinatesOf(6)).toEqual([1, 2]);
    expect(m.coordinatesOf(8)).toBeUndefined();
    expect(m.rankAt([1, 2])).toBe(6);
    expect(m.indexOf(8)).toBe(-1);
  });

  it('is one rank without axes', () => {
    const m = mesh({}, { startRank: 5 });
    expect(m.ranks).toEqual([5]);
    expect(m.coordinatesOf(5)).toEqual([]);
    expect(m.rankAt([])).toBe(5);
  });

  it('takes any list of distinct ranks', () => {
    const m = mesh({ a: 2, b: 2 }, { ranks: [9, 3, 2 ** 40, 0] });
    expect(m.coordinatesOf(2 ** 40)).toEqual([1, 0]);
    expect(m.rankAt([0, 1])).toBe(3);
    expect(m.indexOf(0)).toBe(3);
  });

  it('goes there and back on every coordinate', () => {
    const axes = fc.array(fc.integer({ min: 1, max: 4 }), { maxLength: 5 });
    fc.assert(
      fc.property(axes, fc.infiniteStream(fc.nat(99)), (sizes, keys) => {
        const size = sizes.reduce((product, n) => product * n, 1);
        const ranks = Array.from({ length: size }, (_, i) => ({
          rank: i * 3 + 1,
          key: keys.next().value as number,
        }))
          .sort((x, y) => x.key - y.key)
          .map(({ rank }) => rank);
        const m = mesh(Object.fromEntries(sizes.map((n, i) => [`a${i}`, n])), { ranks });
        // Naive: count coordinates like an odometer.
        const odometer = sizes.map(() => 0);
        for (const [position, rank] of ranks.entries()) {
          expect(m.coordinatesOf(rank)).toEqual(odometer);
          expect(m.rankAt(odometer)).toBe(rank);
          expect(m.indexOf(rank)).toBe(position);
          for (let i = sizes.length - 1; i >= 0; i--) {
            odometer[i]!++;
            if (odometer[i]! < sizes[i]!) break;
            odometer[i] = 0;
          }
        }
      }),
    );
  });

  it('cannot be changed, not even through its arguments', () => {
    const ranks = [1, 0];
    const m = mesh({ tp: 2 }, { ranks });
    ranks[0] = 7;
    expect(m.ranks).toEqual([1, 0]);
    expect(Object.isFrozen(m)).toBe(true);
    expect(Object.isFrozen(m.ranks)).toBe(true);
    expect(Object.isFrozen(m.axes[0])).toBe(true);
  });

  it('writes consecutive ranks short', () => {
    expect(JSON.parse(JSON.stringify(mesh({ tp: 2 }, { startRank: 4 })))).toEqual({
      axes: [{ name: 'tp', size: 2 }],
      startRank: 4,
    });
    expect(mesh({ tp: 2 }, { ranks: [4, 3] }).toJSON()).toEqual({
      axes: [{ name: 'tp', size: 2 }],
      ranks: [4, 3],
    });
  });

  it.each<[string, () => unknown, RegExp]>([
    ['no object', () => mesh(null as never), /axes must be an object .* got null/],
    ['an array of axes', () => mesh([2, 4] as never), /axes must be an object .* got an array of 2/],
    ['size 0', () => mesh({ dp: 2, tp: 0 }), /axes\.tp must be an integer of at least 1 .* got 0/],
    ['negative size', () => mesh({ tp: -1 }), /axes\.tp .* got -1/],
    ['fractional size', () => mesh({ tp: 1.5 }), /axes\.tp .* got 1\.5/],
    ['NaN', () => mesh({ tp: Number.NaN }), /axes\.tp .* got NaN/],
    ['a string', () => mesh({ tp: '4' as never }), /axes\.tp .* got "4"/],
    ['unsafe size', () => mesh({ tp: 2 ** 53 }), /axes\.tp .* got 9007199254740992/],
    [
      'too many ranks',
      () => mesh({ a: 2 ** 20, b: 2 ** 20 }),
      /a 1048576 x b 1048576 is more than the 16777216/,
    ],
    ['name like a number', () => mesh({ 2: 4 }), /a name must start with a letter .* got "2"/],
    ['empty name', () => mesh({ '': 4 }), /a name must start/],
    [
      'few ranks',
      () => mesh({ dp: 2, tp: 2 }, { ranks: [0, 1] }),
      /ranks must list dp 2 x tp 2 = 4 ranks, got 2/,
    ],
    ['ranks without axes', () => mesh({}, { ranks: [] }), /ranks must list \(no axes\) = 1 ranks, got 0/],
    ['ranks no array', () => mesh({ tp: 1 }, { ranks: 3 as never }), /ranks must be an array, got 3/],
    [
      'duplicates',
      () => mesh({ tp: 3 }, { ranks: [4, 1, 4] }),
      /ranks\[2\] is 4, which ranks\[0\] already is/,
    ],
    [
      'negative rank',
      () => mesh({ tp: 1 }, { ranks: [-1] }),
      /ranks\[0\] must be an integer of at least 0 .* got -1/,
    ],
    ['negative start', () => mesh({ tp: 2 }, { startRank: -2 }), /startRank must be an integer in 0\.\./],
    ['start past 2^53', () => mesh({ tp: 2 }, { startRank: Number.MAX_SAFE_INTEGER }), /startRank must be/],
    [
      'start and list',
      () => mesh({ tp: 1 }, { startRank: 0, ranks: [0] }),
      /startRank and ranks exclude each other/,
    ],
    [
      'the same name twice',
      () =>
        new DeviceMesh(
          [
            { name: 'a', size: 1 },
            { name: 'a', size: 1 },
          ],
          [0],
        ),
      /the name a occurs twice/,
    ],
  ])('refuses %s', (_, run, message) => {
    const error = errorOf(run);
    expect(error.code).toBe('ERR_MESH');
    expect(error.message).toMatch(message);
    expect(error.field).toBeDefined();
  });

  it('refuses coordinates outside the grid', () => {
    const m = mesh({ dp: 2, tp: 4 });
    expect(errorOf(() => m.rankAt([1])).message).toMatch(/one entry per axis \(2\), got 1/);
    const error = errorOf(() => m.rankAt([0, 4]));
    expect(error.code).toBe('ERR_INVALID_ARGUMENT');
    expect(error.message).toMatch(/coordinates\[1\] \(axis tp\) must be an integer in 0\.\.3, got 4/);
  });
});
