// SPDX-License-Identifier: Apache-2.0
// What cannot happen becomes an error of the stream and a poisoned rank; the worker, other ranks and the process go on.

import { expect, it } from 'vitest';
import { assembleBackend } from '../assemble-backend.js';
import { code, error, filled, inWorld, ok, streamsOf, value } from '../harness.test-util.js';
import { push } from '../host/enqueue.js';
import { isError } from '../host/errors.js';
import { BackendState } from '../host/state.js';
import { processPool } from '../host/worker-pool.js';
import { processArena } from '../memory/arena.js';

it.each([
  ['an unknown operation', [99, 0, 0, 0, 0]],
  ['an address that nobody handed out', [1, 4000 * 2 ** 40, 4001 * 2 ** 40, 16, 0]],
] as const)('%s', async (_name, record) => {
  const state = new BackendState(processArena, processPool);
  await inWorld(2, { workers: 1, backend: assembleBackend(state) }, async (world) => {
    const { runtime, ranks } = world;
    const [broken, healthy] = streamsOf(world) as [number, number];
    const stream = state.handles.get('stream', broken, 'test');
    if (isError(stream)) throw new Error(stream.detail);
    push(stream, record);
    const failure = error(await runtime.synchronize(broken));
    expect(failure.code).toBe(code('ERR_INTERNAL'));
    expect(runtime.poisonOf(ranks[0]!)?.code).toBe(code('ERR_INTERNAL'));
    const mark = filled(world, 1, [0]);
    ok(runtime, runtime.enqueueFill(healthy, mark, 0, 1, 1));
    value(await runtime.synchronize(healthy));
  });
});
