// SPDX-License-Identifier: Apache-2.0
// The comparison sees what it is there for: a wrong byte, a byte too many, a step that goes wrong.

import { localWorld, type World } from '@nccl-ext/core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { epCase } from '../cases/base.js';
import { enqueueStep } from './enqueue-step.js';
import { EpSession } from './ep-session.js';
import { GuardedTensor } from './guarded-tensor.js';

let world: World;
beforeAll(async () => {
  world = await localWorld({ ranks: 2, backend: 'embedded', workers: 1, logLevel: 'error' });
});
afterAll(() => world.dispose());

describe('a guarded tensor', () => {
  it.each([
    [64 + 8 * 4, 'out.rows [1, 0], byte 0, is 0x01, not 0xde'],
    [64 + 8 * 4 + 5, 'out.rows [1, 1], byte 1, is 0x01, not 0xde'],
    [63, 'out.rows before the tensor is 0x01, not 0xde'],
    [64 + 2 * 8 * 4, 'out.rows behind the tensor is 0x01, not 0xde'],
  ])('sees byte %i', async (at, sentence) => {
    const comm = world.ranks[0]!;
    const stream = comm.createStream();
    const guarded = new GuardedTensor(comm, 'out.rows', 'f32', [2, 8], 0xde);
    guarded.enqueueFill(stream);
    await stream.synchronize();
    const whole = guarded.enqueueRead(stream);
    await stream.synchronize();
    expect(guarded.difference(whole, guarded.image())).toBeUndefined();
    guarded.tensor.buffer.view('u8')[at] = 1;
    const spoilt = guarded.enqueueRead(stream);
    await stream.synchronize();
    expect(guarded.difference(spoilt, guarded.image())).toBe(sentence);
    await guarded.dispose();
  });
});

describe('a step', () => {
  const flat = epCase('ep-order', 'x', {
    ranks: 2,
    handles: [{ layout: 'flat' }],
    routings: [{ ids: 'uniform' }],
  });

  it.each([
    ['tokens', 'out.tokens'],
    ['weights', 'out.topkWeights'],
    ['rows', 'result.tokens'],
    ['topkIdx', 'out.'],
  ])('shows one other bit in %s as a difference of %s', async (spoilt, shown) => {
    const session = await EpSession.open(world, flat);
    const step = session.openStep(0);
    await session.fill(step);
    const { buffer, byteOffset } = step.memories[1]!.get(spoilt)!;
    const words = buffer.view('i32', byteOffset, 1);
    // For an id: not routed. For values: another significand.
    words[0] = spoilt === 'topkIdx' ? -1 : words[0]! ^ 2;
    for (const rank of [0, 1]) enqueueStep(flat, session.target(step, rank));
    await session.synchronize();
    expect(await session.difference(step)).toContain(shown);
    await session.dispose();
  });
});
