// SPDX-License-Identifier: Apache-2.0
// Buffers beyond 4 GiB: every operation at and across 2^31 and 2^32. Only the pages that are touched cost memory.

import { expect, it } from 'vitest';
import { castTransform } from '../../contract/index.js';
import { assembleBackend } from '../assemble-backend.js';
import { inWorld, ok, prepareAll, streamsOf, type TestMove, value } from '../harness.test-util.js';
import { BackendState } from '../host/state.js';
import { WorkerPool } from '../host/worker-pool.js';
import { Arena } from './arena.js';

const gibibyte = 2 ** 30;
const size = 6 * gibibyte;

it.each([2 ** 31, 2 ** 32, 5 * gibibyte])(
  'copies, fills, uploads, downloads and transfers around byte %i',
  async (edge) => {
    const arena = new Arena({ kernels: true, limit: 2 ** 40 });
    const backend = assembleBackend(new BackendState(arena, new WorkerPool(arena)));
    await inWorld(2, { workers: 2, backend }, async (world) => {
      const { runtime, m2n, ranks } = world;
      const [first, second] = streamsOf(world) as [number, number];
      const far = value(runtime.allocate(ranks[0]!, size, 'plain'));
      const near = value(runtime.allocate(ranks[0]!, 4096, 'plain'));
      const target = value(runtime.allocate(ranks[1]!, size, 'plain'));
      const start = edge - 100;
      const up = Uint8Array.from({ length: 200 }, (_, i) => i + 1);
      const down = new Uint8Array(200);
      ok(runtime, runtime.enqueueUpload(first, far, start, up));
      ok(runtime, runtime.enqueueCopy(first, near, 0, far, start, 200));
      ok(runtime, runtime.enqueueFill(first, far, edge - 1, 2, 250));
      ok(runtime, runtime.enqueueCopy(first, far, 0, near, 0, 200));
      ok(runtime, runtime.enqueueDownload(first, down, far, start));
      value(await runtime.synchronize(first));
      up.set([250, 250], 99);
      expect(down).toEqual(up);
      // Bytes in odd runs, words, and converted elements, from both sides of the edge to both sides of it.
      const moves: TestMove[] = [
        {
          from: 0,
          to: 1,
          source: start,
          destination: start + 3,
          inner: 20,
          counts: [1, 2, 4],
          sourceStrides: [0, 80, 20],
          destinationStrides: [0, 80, 20],
        },
        {
          from: 0,
          to: 1,
          source: start,
          destination: start + 400,
          inner: 8,
          counts: [1, 1, 16],
          sourceStrides: [0, 0, 8],
          destinationStrides: [0, 0, 16],
        },
        {
          from: 0,
          to: 1,
          source: start,
          destination: start + 800,
          inner: 50,
          transform: castTransform(2, 1),
        },
      ];
      const transfers = (await prepareAll(world, moves, [[far], [0]], [[0], [target]], true)).map(value);
      ok(runtime, m2n.enqueueTransfer(transfers[0]!, first));
      ok(runtime, m2n.enqueueTransfer(transfers[1]!, second));
      for (const stream of [first, second]) value(await runtime.synchronize(stream));
      const got = new Uint8Array(160);
      ok(runtime, runtime.enqueueDownload(second, got, target, start + 3));
      value(await runtime.synchronize(second));
      expect(got).toEqual(up.subarray(0, 160));
    });
  },
);
