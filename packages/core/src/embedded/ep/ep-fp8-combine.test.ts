// SPDX-License-Identifier: Apache-2.0
// A combine in fp8 gives what scalar arithmetic gives, within its bound.

import { expect, it } from 'vitest';
import { inWorld } from '../harness.test-util.js';
import { enqueueStep, freeSteps } from './ep-calls.test-util.js';
import { combineStep } from './ep-combine.test-util.js';
import { random } from './ep-data.test-util.js';
import { combineToken, decode } from './ep-oracle.test-util.js';
import { EpWorld, placementOf, type Shape } from './ep-world.test-util.js';

const shape: Shape = { ranks: 3, experts: 6, topK: 3, hidden: 128, dtype: 'bf16', maxTokens: 5 };

it.each(['expert-major', 'rank-major', 'flat', 'packed'] as const)(
  'passes fp8 payloads in %s',
  async (layout) => {
    for (const dtype of ['f32', 'bf16', 'f16'] as const) {
      const of: Shape = { ...shape, dtype };
      await inWorld(of.ranks, {}, async (test) => {
        const world = await EpWorld.open(test, of);
        const next = random(11);
        const handles = world.handles(layout);
        const done = enqueueStep(world, layout, handles, { placement: placementOf(of) }, next);
        await combineStep(world, layout, handles, done, next, { fp8: true });
        freeSteps(world, done);
      });
    }
  },
);

it('keeps fp8 payloads within 2^-4 of a value, or 2^-10 of the scale', () => {
  const next = random(4);
  const of: Shape = { ...shape, dtype: 'f32' };
  for (let round = 0; round < 200; round++) {
    const row = Float32Array.from({ length: 128 }, () => (next() - 0.5) * 2 ** (next() * 20));
    const passed = decode(
      'f32',
      combineToken(of, [{ rank: 0, weight: undefined, row }], { payload: true, fp8: true }),
    );
    const scale = Math.max(...row.map(Math.abs)) / 448;
    row.forEach((value, i) => {
      expect(Math.abs(passed[i]! - value)).toBeLessThanOrEqual(Math.abs(value) * 2 ** -4 + scale * 2 ** -10);
    });
  }
});
