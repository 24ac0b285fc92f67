// SPDX-License-Identifier: Apache-2.0
// An abort ends every wait of the rank and tells its peers.

import { describe, expect, it } from 'vitest';
import { code, error, inWorld, ok, refused, streamsOf, type TestWorld } from '../harness.test-util.js';

describe('abort', () => {
  async function waiting(
    body: (world: TestWorld, streams: readonly number[]) => Promise<void>,
  ): Promise<void> {
    await inWorld(2, { timeoutMs: 60_000 }, async (world) => {
      const streams = streamsOf(world);
      await body(world, streams);
    });
  }

  it('ends waits of the rank on streams, with the reason', async () => {
    await waiting(async ({ runtime, ranks }, streams) => {
      ok(runtime, runtime.enqueueBarrier(streams[0]!));
      ok(runtime, runtime.enqueueBarrier(streams[0]!));
      const done = runtime.synchronize(streams[0]!);
      ok(runtime, runtime.abortRank(ranks[0]!, 'the user said so'));
      const record = error(await done);
      expect(record).toMatchObject({ code: code('ERR_ABORTED'), rank: 0, op: 'barrier' });
      expect(record.detail).toContain('the user said so');
      expect(runtime.poisonOf(ranks[0]!)?.code).toBe(code('ERR_ABORTED'));
      refused(runtime, runtime.enqueueBarrier(streams[0]!), 'ERR_POISONED');
    });
  });

  it('ends host calls of the rank and of those who wait for it', async () => {
    await waiting(async ({ runtime, ranks }) => {
      const own = runtime.exchange(ranks[0]!, 't', new Uint8Array(0));
      ok(runtime, runtime.abortRank(ranks[0]!, 'enough'));
      expect(error(await own).code).toBe(code('ERR_ABORTED'));
      const late = error(await runtime.exchange(ranks[1]!, 't', new Uint8Array(0)));
      expect(late).toMatchObject({ code: code('ERR_RANK_LOST'), rank: 1, peer: 0 });
    });
    await waiting(async ({ runtime, ranks }) => {
      const other = runtime.exchange(ranks[1]!, 't', new Uint8Array(0));
      ok(runtime, runtime.abortRank(ranks[0]!, 'enough'));
      expect(error(await other)).toMatchObject({ code: code('ERR_RANK_LOST'), peer: 0 });
    });
  });

  it('tells peers on streams that the rank is lost', async () => {
    await waiting(async ({ runtime, ranks }, streams) => {
      ok(runtime, runtime.enqueueBarrier(streams[1]!));
      ok(runtime, runtime.abortRank(ranks[0]!, 'enough'));
      expect(error(await runtime.synchronize(streams[1]!))).toMatchObject({
        code: code('ERR_RANK_LOST'),
        peer: 0,
      });
    });
  });

  it('frees a stopped rank from standing still', async () => {
    await waiting(async ({ runtime, ranks, faults }, streams) => {
      ok(runtime, faults.stopRank(ranks[0]!));
      ok(runtime, runtime.enqueueBarrier(streams[0]!));
      const call = runtime.exchange(ranks[0]!, 't', new Uint8Array(0));
      ok(runtime, runtime.abortRank(ranks[0]!, 'enough'));
      expect(error(await runtime.synchronize(streams[0]!)).code).toBe(code('ERR_ABORTED'));
      expect(error(await call).code).toBe(code('ERR_ABORTED'));
    });
  });
});
