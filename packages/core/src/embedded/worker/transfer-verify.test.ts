// SPDX-License-Identifier: Apache-2.0
// Verification finds damage on the way and says whose and where.

import { describe, expect, it } from 'vitest';
import {
  bytesOf,
  code,
  error,
  filled,
  inWorld,
  ok,
  prepareAll,
  streamsOf,
  type TestMove,
  value,
} from '../harness.test-util.js';

const zeros = (bytes: number): Uint8Array => new Uint8Array(bytes);

describe('verification', () => {
  it('finds one flipped bit and names the sender and the tensor; the ranks stay usable', async () => {
    await inWorld(3, { workers: 2 }, async (world) => {
      const { runtime, m2n, faults, ranks } = world;
      const sources = [0, 1, 2].map((rank) => filled(world, rank, new Uint8Array(1000).fill(rank)));
      const destinations = [0, 1, 2].map((rank) => filled(world, rank, zeros(2000)));
      const moves: TestMove[] = [
        { from: 0, to: 2, inner: 1000, tensor: 1 },
        { from: 1, to: 2, inner: 1000, destination: 1000, tensor: 1 },
      ];
      const lists = (buffers: number[]): number[][] => buffers.map((buffer) => [0, buffer]);
      const transfers = (await prepareAll(world, moves, lists(sources), lists(destinations), true)).map(
        value,
      );
      const streams = streamsOf(world);
      const execute = async () => {
        transfers.forEach((transfer, rank) => {
          ok(runtime, m2n.enqueueTransfer(transfer, streams[rank]!));
        });
        return Promise.all(streams.map((stream) => runtime.synchronize(stream)));
      };
      ok(runtime, faults.corruptNextMove(ranks[1]!));
      const damaged = await execute();
      expect(damaged.map((outcome) => outcome.ok)).toEqual([true, true, false]);
      const record = error(damaged[2]!);
      expect(record).toMatchObject({ code: code('ERR_VERIFY'), rank: 2, peer: 1, op: 'transfer' });
      expect(record.detail).toContain('tensor 1');
      expect(typeof record.expected).toBe('bigint');
      expect(record.expected).not.toBe(record.seen);
      expect(m2n.progressOf(transfers[2]!).completed).toBe(0);
      for (const outcome of await execute()) value(outcome);
      expect(m2n.progressOf(transfers[2]!).completed).toBe(1);
      expect(bytesOf(runtime, destinations[2]!, 2000).indexOf(1)).toBe(1000);
    });
  });

  it('covers forwarded moves', async () => {
    await inWorld(3, {}, async (world) => {
      const { runtime, m2n, faults, ranks } = world;
      const [source, middle, end] = [0, 1, 2].map((rank) => filled(world, rank, zeros(64)));
      const moves: TestMove[] = [
        { from: 0, to: 1, inner: 64 },
        { from: 1, to: 2, inner: 64, stage: 1 },
      ];
      const transfers = (
        await prepareAll(world, moves, [[source!], [0], [0]], [[0], [middle!], [end!]], true)
      ).map(value);
      const streams = streamsOf(world);
      ok(runtime, faults.corruptNextMove(ranks[1]!));
      transfers.forEach((transfer, rank) => {
        ok(runtime, m2n.enqueueTransfer(transfer, streams[rank]!));
      });
      const outcomes = await Promise.all(streams.map((stream) => runtime.synchronize(stream)));
      expect(outcomes.map((outcome) => outcome.ok)).toEqual([true, true, false]);
      expect(error(outcomes[2]!).detail).toContain('forwarded');
    });
  });
});
