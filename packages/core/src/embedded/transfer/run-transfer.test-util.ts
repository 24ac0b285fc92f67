// SPDX-License-Identifier: Apache-2.0
// Runs a transfer of one tensor between all ranks and compares it with a naive copy of the same moves.

import { expect } from 'vitest';
import {
  bytesOf,
  filled,
  ok,
  prepareAll,
  streamsOf,
  type TestMove,
  type TestWorld,
  value,
} from '../harness.test-util.js';

/** Bytes of each source and destination. */
export const bufferBytes = 4096;

/** What `moves` do to the destinations, run by run, stage by stage. */
function model(moves: readonly TestMove[], sources: Uint8Array[], destinations: Uint8Array[]): Uint8Array[] {
  const result = destinations.map((bytes) => bytes.slice());
  for (const stage of [0, 1]) {
    for (const move of moves.filter((candidate) => (candidate.stage ?? 0) === stage)) {
      const from = stage === 0 ? sources[move.from]! : result[move.from]!;
      const [c0, c1, c2] = move.counts ?? [1, 1, 1];
      const [s0, s1, s2] = move.sourceStrides ?? [0, 0, 0];
      const [d0, d1, d2] = move.destinationStrides ?? [0, 0, 0];
      for (let i = 0; i < c0; i++)
        for (let j = 0; j < c1; j++)
          for (let k = 0; k < c2; k++) {
            const at = (move.source ?? 0) + i * s0 + j * s1 + k * s2;
            const to = (move.destination ?? 0) + i * d0 + j * d1 + k * d2;
            result[move.to]!.set(from.subarray(at, at + move.inner), to);
          }
    }
  }
  return result;
}

/** Content that no two bytes of two ranks have at the same place. */
function content(seed: number): Uint8Array {
  return Uint8Array.from(
    { length: bufferBytes },
    (_, i) => (Math.imul(i + seed * 7919, 2654435761) >>> 24) & 255,
  );
}

/** One transfer of tensor 0 between all ranks, executed `rounds` times with new sources. */
export async function runTransfer(
  world: TestWorld,
  moves: readonly TestMove[],
  verify: boolean,
  rounds = 1,
): Promise<void> {
  const { runtime, m2n } = world;
  const sources = world.ranks.map((_, rank) => filled(world, rank, content(rank)));
  const destinations = world.ranks.map((_, rank) => filled(world, rank, content(rank + 100)));
  const streams = streamsOf(world);
  const lists = (buffers: readonly number[]): number[][] => buffers.map((buffer) => [buffer]);
  const transfers = (await prepareAll(world, moves, lists(sources), lists(destinations), verify)).map(value);
  for (let round = 0; round < rounds; round++) {
    const before = sources.map((buffer, rank) => {
      const bytes = bytesOf(runtime, buffer, bufferBytes);
      bytes.set(content(rank + 1000 * round));
      return bytes.slice();
    });
    const old = destinations.map((buffer) => bytesOf(runtime, buffer, bufferBytes).slice());
    transfers.forEach((transfer, rank) => {
      ok(runtime, m2n.enqueueTransfer(transfer, streams[rank]!));
    });
    for (const outcome of await Promise.all(streams.map((stream) => runtime.synchronize(stream))))
      value(outcome);
    const want = model(moves, before, old);
    for (const [rank, buffer] of destinations.entries())
      expect(Buffer.compare(bytesOf(runtime, buffer, bufferBytes), want[rank]!)).toBe(0);
  }
  const written = moves.map(({ inner, counts = [1, 1, 1] }) => inner * counts[0] * counts[1] * counts[2]);
  const reported = transfers.map((transfer) => m2n.progressOf(transfer));
  expect(reported.reduce((sum, { writtenBytes }) => sum + writtenBytes, 0)).toBe(
    rounds * written.reduce((sum, bytes) => sum + bytes, 0),
  );
  expect(reported.map(({ completed }) => completed)).toEqual(world.ranks.map(() => rounds));
  for (const outcome of await Promise.all(transfers.map((transfer) => m2n.disposeTransfer(transfer))))
    value(outcome);
  for (const buffer of [...sources, ...destinations]) ok(runtime, runtime.freeBuffer(buffer));
  for (const stream of streams) ok(runtime, runtime.freeStream(stream));
}
