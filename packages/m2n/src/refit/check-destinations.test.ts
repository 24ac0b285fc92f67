// SPDX-License-Identifier: Apache-2.0
// Loading and checking by themselves: what was loaded passes, a single wrong byte does not.

import { type DType, layout, localWorld, mesh, shard, strided } from '@nccl-ext/core';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createPlan } from '../plan/create-plan.js';
import { patternOf } from '../plan/pattern-of-layout.js';
import { checkDestinations } from './check-destinations.js';
import { hostAccess } from './host-access.js';
import { loadSources } from './load-sources.js';
import { allocateStorages, placeStorages } from './storage-arena.js';
import { syntheticValues } from './values.js';

const shape = [6, 10];
/** Columns of rank 1: two segments of 5, each cut 3 to 2. */
const columns = 4;
const nothing = (): void => {};

describe('checkDestinations', () => {
  it.each([0, 3])(
    'finds one wrong byte anywhere in storage whose rows lie %i elements apart',
    async (gap) => {
      const held = layout({ shape, dtype: 'f32', mesh: mesh({ tp: 2 }), placements: [shard(1, strided(2))] });
      const pattern =
        gap === 0 ? patternOf(held) : patternOf(held, { byteStrides: () => [(columns + gap) * 4, 4] });
      const side = [{ pattern, storage: 'w' }];
      const plan = createPlan({ tensors: [{ name: 'w', source: side, destination: side }] });
      const values = syntheticValues(new Map([['w', { shape, dtype: 'f32' as DType }]]));
      const world = await localWorld({ ranks: 2, backend: 'embedded' });
      try {
        const comm = world.ranks[1]!;
        const arena = allocateStorages(comm, placeStorages(plan.destinationTensorsOf(1)));
        const access = hostAccess(comm.createStream());
        await loadSources(arena, access, values, nothing, undefined);
        const check = () => checkDestinations(1, arena, access, values, () => 'f32', nothing, undefined);
        await check();
        const bytes = arena.buffer!.view('u8');
        for (let row = 0; row < 6; row++) {
          const at = row * (columns + gap) * 4 + ((row * 7) % (columns * 4));
          bytes[at]! ^= 1;
          await expect(check()).rejects.toMatchObject({ code: 'ERR_VERIFY', rank: 1, field: 'w' });
          bytes[at]! ^= 1;
        }
        await check();
      } finally {
        await world.dispose();
      }
    },
  );
});

describe('syntheticValues', () => {
  it('gives a slice what the whole has there, and different elements different values', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom<DType>('f64', 'f32', 'bf16', 'u8'),
        fc.integer({ min: 1, max: 3 }),
        async (dtype, tp) => {
          const whole = layout({ shape, dtype, mesh: mesh({ tp: 1 }), placements: [shard(0)] });
          const part = layout({ shape, dtype, mesh: mesh({ tp }), placements: [shard(1)] });
          const values = syntheticValues(new Map([['w', { shape, dtype }]]));
          const all = new Uint8Array(whole.bytes);
          await values.read('w', whole.runs(0)!, all);
          const size = whole.bytes / 60;
          for (const rank of part.mesh.ranks) {
            const slice = new Uint8Array(part.localBytes(rank));
            await values.read('w', part.runs(rank)!, slice);
            const width = part.localShape(rank)![1]!;
            for (let element = 0; element < slice.length / size; element++) {
              const [row, column] = part.toGlobal(rank, [Math.floor(element / width), element % width]) as [
                number,
                number,
              ];
              const at = (row * 10 + column) * size;
              expect(slice.subarray(element * size, (element + 1) * size)).toEqual(
                all.subarray(at, at + size),
              );
            }
          }
        },
      ),
      { numRuns: 20 },
    );
  });
});
