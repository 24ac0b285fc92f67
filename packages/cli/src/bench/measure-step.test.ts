// SPDX-License-Identifier: Apache-2.0
// A measurement that is interrupted says so, and leaves nothing that the next one would meet.

import { expect, it } from 'vitest';
import { type BenchWorld, openLocal } from './bench-world.js';
import { stepRow } from './m2n-rows.js';
import { measureStep } from './measure-step.js';
import { sidesOf } from './sides.js';

it('small steps end with the reason of the signal, in a graph or out of it', async () => {
  const world = await openLocal({ ranks: 2, backend: 'embedded' });
  const row = stepRow(sidesOf(['a', 'a']), 8);
  try {
    for (const last of [1, 2, 7]) {
      const controller = new AbortController();
      const reason = new Error('interrupted');
      let measured = 0;
      const slowest = async (ms: number): Promise<number> => {
        if (++measured === last) controller.abort(reason);
        return ms;
      };
      const { signal } = controller;
      const attempt = measureStep({ ...world, slowest } as BenchWorld, row, { signal, budgetMs: 0 });
      await expect(attempt).rejects.toBe(reason);
    }
    const { signal } = new AbortController();
    await expect(measureStep(world, row, { signal, budgetMs: 0 })).resolves.toMatchObject({ bytes: 8 });
  } finally {
    await world.dispose();
  }
});
