// SPDX-License-Identifier: Apache-2.0
// Any layout holds what a naive oracle says, finds its elements again, and leaves gaps only where its ranges do.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { anyLayout } from './layout-oracle.test-util.js';
import { firstUncovered } from './runs.js';

describe('layout', () => {
  it('holds what the oracle says, for every rank and dimension', () => {
    fc.assert(
      fc.property(fc.gen(), (g) => {
        const { subject, expected } = anyLayout(g, 40, 3);
        subject.mesh.ranks.forEach((rank, position) => {
          const runs = subject.runs(rank)!;
          const lists = runs.map(({ runs, extent }) => {
            const list: number[] = [];
            for (const run of runs) {
              expect(run.local).toBe(list.length);
              for (let i = 0; i < run.count; i++) {
                for (let x = 0; x < run.length; x++) list.push(run.start + i * run.stride + x);
              }
            }
            expect(list.length).toBe(extent);
            return list;
          });
          expect(lists).toEqual(expected[position]);
          expect(subject.localShape(rank)).toEqual(expected[position]!.map((list) => list.length));
          expect(subject.localBytes(rank)).toBe(expected[position]!.reduce((n, list) => n * list.length, 4));
        });
      }),
      { numRuns: 600 },
    );
  });

  it('maps elements there and back in up to eight dimensions, and names all holders', () => {
    fc.assert(
      fc.property(fc.gen(), (g) => {
        const { subject, expected } = anyLayout(g, 6, 8);
        const { ranks } = subject.mesh;
        for (const [position, rank] of ranks.entries()) {
          const held = expected[position]!;
          if (held.some((list) => list.length === 0)) continue;
          const local = held.map((list) => g(fc.nat, { max: list.length - 1 }));
          const global = subject.toGlobal(rank, local);
          expect(global).toEqual(local.map((index, dim) => held[dim]![index]));
          expect(subject.toLocal(rank, global)).toEqual(local);
        }
        if (subject.shape.includes(0)) return;
        const global = subject.shape.map((extent) => g(fc.nat, { max: extent - 1 }));
        const holds = (position: number): boolean =>
          expected[position]!.every((list, d) => list.includes(global[d]!));
        expect(subject.holders(global)).toEqual(ranks.filter((_, position) => holds(position)));
        ranks.forEach((rank, position) => {
          expect(subject.toLocal(rank, global) !== undefined).toBe(holds(position));
        });
      }),
      { numRuns: 400 },
    );
  });

  it('shares one object between coordinates of equal content, and only those', () => {
    fc.assert(
      fc.property(fc.gen(), (g) => {
        const { subject } = anyLayout(g, 12, 3);
        for (const { runs, axes } of subject.dims) {
          expect(runs.length).toBe(axes.reduce((n, axis) => n * subject.mesh.axes[axis]!.size, 1));
          const forms = new Set(runs.map((dim) => JSON.stringify(dim)));
          expect(new Set(runs).size).toBe(forms.size);
        }
        expect(subject.dims).toBe(subject.dims);
      }),
    );
  });

  it('covers every dimension unless ranges leave a gap', () => {
    fc.assert(
      fc.property(fc.gen(), (g) => {
        const { subject, expected } = anyLayout(g, 30, 3);
        subject.dims.forEach(({ runs }, dim) => {
          const held = new Set(expected.flatMap((lists) => lists[dim]!));
          const missing = Array.from({ length: subject.shape[dim]! }, (_, i) => i).find((i) => !held.has(i));
          expect(firstUncovered(runs, subject.shape[dim]!)?.[0]).toBe(missing);
        });
      }),
    );
  });
});
