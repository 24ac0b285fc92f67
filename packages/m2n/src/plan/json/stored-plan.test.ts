// SPDX-License-Identifier: Apache-2.0
// A plan survives being stored, and a document that lies is refused before anything could move.

import { readFileSync } from 'node:fs';
import { layout, mesh, NcclExtError, shard } from '@nccl-ext/core';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createPlan } from '../create-plan.js';
import { patternOf } from '../pattern-of-layout.js';
import { tensors, topologies, worldSize } from '../random-tensors.test-util.js';
import { planJsonSchema } from './plan-schema.js';
import { planFromJSON } from './stored-plan.js';

const at = (startRank: number, dim: number) =>
  layout({
    shape: [8, 8],
    dtype: 'f32',
    mesh: mesh({ tp: 2 }, { startRank }),
    placements: { tp: shard(dim) },
  });
const small = createPlan({ tensors: [{ name: 'w', source: at(0, 0), destination: at(2, 1) }] });

describe('planFromJSON', () => {
  it('gives back the programs and bindings of any plan', () => {
    fc.assert(
      fc.property(tensors('a'), tensors('b'), topologies, (a, b, topology) => {
        const copies = (side: typeof a.source, storages: string[]) =>
          storages.map((storage) => ({ pattern: patternOf(side as ReturnType<typeof at>), storage }));
        const tied = { ...b, destination: copies(b.destination, ['one', 'two']) };
        const plan = createPlan({ tensors: [a, tied], worldSize, topology, cacheEntries: 0 });
        const stored = planFromJSON(JSON.parse(JSON.stringify(plan)));
        expect([stored.digest, stored.worldSize]).toEqual([plan.digest, plan.worldSize]);
        expect(stored.tensors.map(({ name, slot, request }) => [name, slot, request])).toEqual(
          plan.tensors.map(({ name, slot, request }) => [name, slot, request]),
        );
        expect(stored.ranks).toEqual(Array.from({ length: worldSize }, (_, rank) => rank));
        for (const rank of stored.ranks) {
          expect(stored.program(rank)).toEqual(plan.program(rank));
          expect(stored.program(rank, { receives: true })).toEqual(plan.program(rank, { receives: true }));
          expect(stored.sourceTensorsOf(rank)).toEqual(plan.sourceTensorsOf(rank));
          expect(stored.destinationTensorsOf(rank)).toEqual(plan.destinationTensorsOf(rank));
        }
      }),
      { numRuns: 60 },
    );
  });

  it('keeps the ranks that were asked for, and says which is missing', () => {
    const stored = planFromJSON(small.toJSON({ ranks: [3, 0, 3] }));
    expect(stored.ranks).toEqual([0, 3]);
    expect(() => stored.program(1)).toThrow('no program of rank 1');
    expect(() => stored.program(3, { receives: true })).toThrow('no program of rank 1');
    expect(planFromJSON(small.toJSON({ ranks: [] })).ranks).toEqual([]);
  });

  it.each<[string, (document: Record<string, never>) => void, string]>([
    ['format', (d) => Object.assign(d, { format: 'other' }), 'format'],
    ['version', (d) => Object.assign(d, { version: 2 }), 'version'],
    ['unknown keys', (d) => Object.assign(d, { extra: 1 }), ''],
    ['digest', (d) => Object.assign(d, { digest: 'xyz' }), 'digest'],
    ['program of a foreign rank', (d) => set(d, 'programs.0.rank', 4), 'programs[0].rank'],
    ['program twice', (d) => set(d, 'programs.1.rank', 0), 'programs[1].rank'],
    ['peer outside', (d) => set(d, 'programs.0.sends.peer.1', 4), 'programs[0].sends.peer[1]'],
    ['peer unsorted', (d) => set(d, 'programs.0.sends.peer.1', 1), 'programs[0].sends.peer[1]'],
    ['stage', (d) => set(d, 'programs.0.sends.stage.0', 2), 'programs[0].sends.stage[0]'],
    ['tensor', (d) => set(d, 'programs.0.sends.tensor.0', 1), 'programs[0].sends.tensor[0]'],
    [
      'negative offset',
      (d) => set(d, 'programs.0.sends.sourceOffset.0', -8),
      'programs[0].sends.sourceOffset[0]',
    ],
    ['fraction', (d) => set(d, 'programs.0.sends.inner.0', 1.5), 'programs[0].sends.inner[0]'],
    ['text', (d) => set(d, 'programs.0.sends.counts.2', '4'), 'programs[0].sends.counts[2]'],
    ['short column', (d) => set(d, 'programs.0.sends.inner', [4]), 'programs[0].sends.inner'],
    ['no array', (d) => set(d, 'programs.0.sends.inner', 4), 'programs.0.sends.inner'],
    ['transform', (d) => set(d, 'programs.0.sends.transform.0', 999), 'programs[0].sends.transform[0]'],
    ['peers unsorted', (d) => set(d, 'programs.2.receivePeers', [1, 0]), 'programs[2].receivePeers[1]'],
    ['pattern number', (d) => set(d, 'tensors.0.source.0.pattern', 7), 'tensors[0].source[0].pattern'],
    ['storage', (d) => set(d, 'tensors.0.source.0.storage', 7), 'tensors[0].source[0].storage'],
    ['no copies', (d) => set(d, 'tensors.0.destination', []), 'tensors[0].destination'],
    ['tensor name', (d) => set(d, 'tensors.0.name', 7), 'tensors[0].name'],
    ['tensor slot', (d) => set(d, 'tensors.0.slot', -1), 'tensors[0].slot'],
    ['tensor that is none', (d) => set(d, 'tensors.0', null), 'tensors[0]'],
    ['a hole among tensors', (d) => set(d, 'tensors', new Array(1)), 'tensors[0]'],
    ['a hole among copies', (d) => set(d, 'tensors.0.source', new Array(1)), 'tensors[0].source[0]'],
    [
      'pattern that does not fit',
      (d) => set(d, 'patterns.0.parts.0.dims.0.0.0', 6),
      'patterns[0].parts[0].dims[0]',
    ],
    [
      'an offset behind the source',
      (d) => set(d, 'programs.0.sends.sourceOffset.0', 68),
      'programs[0].sends.sourceOffset[0]',
    ],
    [
      'an offset behind the destination, which other tensors may follow in a buffer',
      (d) => set(d, 'programs.0.sends.destinationOffset.0', 68),
      'programs[0].sends.destinationOffset[0]',
    ],
    [
      'a stride that leaves the destination',
      (d) => set(d, 'programs.0.sends.destinationStrides.2', 64),
      'programs[0].sends.destinationOffset[0]',
    ],
    [
      'endless loops of stride 0',
      (d) => set(d, 'programs.0.sends.counts.0', 2 ** 40),
      'programs[0].sends.counts[0]',
    ],
    [
      'a conversion to another dtype than the destination has',
      (d) => set(d, 'programs.0.sends.transform.0', 1),
      'programs[0].sends.transform[0]',
    ],
    [
      'a receiver that holds nothing',
      (d) => set(d, 'programs.0.sends.peer.0', 1),
      'programs[0].sends.destinationOffset[0]',
    ],
    ['pattern ranks', (d) => set(d, 'patterns.0.parts.0.ranks.0', 4), 'patterns[0].parts[0].ranks[0]'],
  ])('refuses %s', (_, change, field) => {
    const document = JSON.parse(JSON.stringify(small));
    change(document);
    const refusal = (): unknown => {
      try {
        return planFromJSON(document);
      } catch (error) {
        return NcclExtError.is(error, 'ERR_INVALID_ARGUMENT') ? error.field : error;
      }
    };
    expect(refusal()).toBe(field);
  });

  it('refuses what is no object', () => {
    for (const value of [undefined, null, 1, 'plan', []])
      expect(() => planFromJSON(value)).toThrow('malformed');
  });
});

describe('plan.schema.json', () => {
  it('is what the schema in code says', () => {
    const path = new URL('../../../schemas/plan.schema.json', import.meta.url);
    expect(readFileSync(path, 'utf8')).toBe(planJsonSchema());
  });
});

function set(document: unknown, path: string, value: unknown): void {
  const keys = path.split('.');
  const last = keys.pop()!;
  const owner = keys.reduce((at, key) => (at as Record<string, unknown>)[key], document);
  (owner as Record<string, unknown>)[last] = value;
}
