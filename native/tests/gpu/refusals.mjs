// SPDX-License-Identifier: Apache-2.0
// A world of two ranks on GPU 0 for tests of bad input, which must work on after all of them; and ways to expect a refusal.

import assert from 'node:assert/strict';
import { after, before } from 'node:test';
import { localWorld, probeBackend } from '@nccl-ext/core';

export const MiB = 1 << 20;

const { probe } = await probeBackend('cuda');
export const gpus = probe?.devices.length ?? 0;

/** Filled before the first test of a file: two ranks, and a stream of the first. */
export const shared = { world: undefined, comm: undefined, peer: undefined, stream: undefined };

before(async () => {
  const world = await localWorld({ ranks: 2, backend: 'cuda', devices: [0, 0], timeoutMs: 10_000 });
  const [comm, peer] = world.ranks;
  Object.assign(shared, { world, comm, peer, stream: comm.createStream() });
});

after(async () => {
  await worksOn(shared.world);
  await shared.world.dispose();
});

/** Barrier, agreement and a copy on both ranks. */
async function worksOn(world) {
  await world.run(async (one) => {
    const own = one.createStream();
    const buffer = one.allocate(MiB);
    const back = new Uint8Array(MiB);
    own.fill(buffer, 7);
    own.barrier();
    own.download(back, buffer);
    await own.synchronize();
    assert.ok(back.every((byte) => byte === 7));
    await one.agree('works on', {});
    await own.dispose();
    await buffer.dispose();
  });
}

/** `call` throws an error of this code whose message fits. */
export function refused(call, code, pattern = /./) {
  assert.throws(call, (error) => {
    assert.equal(error.code, code, error.stack);
    assert.match(error.message, pattern);
    return true;
  });
}

/** `call` of each rank rejects, with these codes by rank. */
export async function allRefused(call, codes) {
  const ended = await Promise.allSettled(shared.world.ranks.map(async (one) => call(one)));
  assert.deepEqual(
    ended.map(({ reason }) => reason?.code),
    codes,
    ended.map(({ reason }) => reason?.message).join('\n'),
  );
}

/** The value of a call, or the code of its error. */
export function tryTo(call) {
  try {
    return { value: call() };
  } catch (error) {
    assert.ok(error.code !== undefined, error.stack);
    return { code: error.code };
  }
}
