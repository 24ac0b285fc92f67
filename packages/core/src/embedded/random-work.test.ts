// SPDX-License-Identifier: Apache-2.0
// Random work on many streams against a model that runs it one operation after the other, eagerly and from graphs.
//
// Every rank owns a buffer and every stream a part of it, which only that stream writes. A stream may read the part of another
// one of its rank, but only behind an event that the other recorded, and the other then waits for an event before it
// writes again. So the result is determined, and any lost order shows.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { bytesOf, inWorld, ok, type TestWorld, value } from './harness.test-util.js';

const partBytes = 64;
const streamsPerRank = 3;

type Op =
  | {
      readonly kind: 'fill';
      readonly stream: number;
      readonly at: number;
      readonly bytes: number;
      readonly value: number;
    }
  | {
      readonly kind: 'copy';
      readonly stream: number;
      readonly from: number;
      readonly at: number;
      readonly bytes: number;
    }
  | {
      readonly kind: 'upload';
      readonly stream: number;
      readonly at: number;
      readonly bytes: number;
      readonly value: number;
    }
  | { readonly kind: 'barrier' };

function operations(streams: number): fc.Arbitrary<Op[]> {
  const stream = fc.nat({ max: streams - 1 });
  const half = partBytes / 2;
  const at = fc.nat({ max: half - 1 });
  const bytes = fc.integer({ min: 1, max: half });
  const byte = fc.nat({ max: 255 });
  return fc.array(
    fc.oneof(
      {
        weight: 4,
        arbitrary: fc.record({ kind: fc.constant('fill' as const), stream, at, bytes, value: byte }),
      },
      {
        weight: 4,
        arbitrary: fc.record({ kind: fc.constant('copy' as const), stream, from: stream, at, bytes }),
      },
      {
        weight: 2,
        arbitrary: fc.record({ kind: fc.constant('upload' as const), stream, at, bytes, value: byte }),
      },
      { weight: 1, arbitrary: fc.record({ kind: fc.constant('barrier' as const) }) },
    ),
    { maxLength: 40 },
  );
}

/** One operation after the other. Parts of all streams of all ranks. */
function model(ops: readonly Op[], parts: Uint8Array[]): void {
  for (const op of ops) {
    if (op.kind === 'barrier') continue;
    const part = parts[op.stream]!;
    if (op.kind === 'copy') part.set(source(op, parts).slice(), op.at);
    else part.fill(op.value, op.at, op.at + op.bytes);
  }
}

/** A copy reads the same offset of a stream of the same rank, or the other half of its own part. */
function source(op: Op & { kind: 'copy' }, parts: readonly Uint8Array[]): Uint8Array {
  const from = sourceStream(op);
  const at = from === op.stream ? op.at + partBytes / 2 : op.at;
  return parts[from]!.subarray(at, at + copyBytes(op));
}

/** Short enough to stay in a part, from its second half too. */
function copyBytes(op: Op & { kind: 'copy' }): number {
  return Math.min(op.bytes, partBytes / 2 - op.at);
}

function sourceStream(op: Op & { kind: 'copy' }): number {
  const rank = Math.floor(op.stream / streamsPerRank);
  return rank * streamsPerRank + (op.from % streamsPerRank);
}

interface Setup {
  readonly streams: readonly number[];
  readonly events: readonly number[];
  readonly buffers: readonly number[];
}

function enqueueAll(
  world: TestWorld,
  { streams, events, buffers }: Setup,
  ops: readonly Op[],
  capture: boolean,
): void {
  const { runtime } = world;
  const place = (stream: number): [number, number] => [
    buffers[Math.floor(stream / streamsPerRank)]!,
    (stream % streamsPerRank) * partBytes,
  ];
  for (const op of ops) {
    if (op.kind === 'barrier') {
      for (let rank = 0; rank < world.ranks.length; rank++)
        ok(runtime, runtime.enqueueBarrier(streams[rank * streamsPerRank]!));
      continue;
    }
    const stream = streams[op.stream]!;
    const [buffer, start] = place(op.stream);
    if (op.kind === 'fill')
      ok(runtime, runtime.enqueueFill(stream, buffer, start + op.at, op.bytes, op.value));
    else if (op.kind === 'upload')
      ok(
        runtime,
        runtime.enqueueUpload(stream, buffer, start + op.at, new Uint8Array(op.bytes).fill(op.value)),
      );
    else {
      const from = sourceStream(op);
      const own = from === op.stream;
      const [, sourceStart] = place(from);
      const bytes = copyBytes(op);
      const at = sourceStart + (own ? op.at + partBytes / 2 : op.at);
      if (!own && !capture) {
        ok(runtime, runtime.recordEvent(events[from]!, streams[from]!));
        ok(runtime, runtime.waitEvent(stream, events[from]!));
      }
      ok(runtime, runtime.enqueueCopy(stream, buffer, start + op.at, buffer, at, bytes));
      if (!own && !capture) {
        ok(runtime, runtime.recordEvent(events[op.stream]!, stream));
        ok(runtime, runtime.waitEvent(streams[from]!, events[op.stream]!));
      }
    }
  }
}

async function check(world: TestWorld, ops: readonly Op[], replays: number): Promise<void> {
  const { runtime, ranks } = world;
  const own = ranks.flatMap((rank) => new Array(streamsPerRank).fill(rank));
  const setup: Setup = {
    streams: own.map((rank) => value(runtime.createStream(rank))),
    events: own.map((rank) => value(runtime.createEvent(rank))),
    buffers: ranks.map((rank) => value(runtime.allocate(rank, partBytes * streamsPerRank, 'plain'))),
  };
  const parts = own.map(() => new Uint8Array(partBytes));
  for (const buffer of setup.buffers) bytesOf(runtime, buffer, partBytes * streamsPerRank).fill(0);
  const graphs: number[] = [];
  if (replays > 0) {
    for (const stream of setup.streams) ok(runtime, runtime.beginCapture(stream));
    enqueueAll(world, setup, ops, true);
    graphs.push(...setup.streams.map((stream) => value(runtime.endCapture(stream))));
  }
  for (let round = 0; round < Math.max(1, replays); round++) {
    if (replays === 0) enqueueAll(world, setup, ops, false);
    graphs.forEach((graph, i) => {
      ok(runtime, runtime.launchGraph(graph, setup.streams[i]!));
    });
    model(ops, parts);
  }
  for (const outcome of await Promise.all(setup.streams.map((stream) => runtime.synchronize(stream))))
    value(outcome);
  const got = own.map((_, stream) =>
    bytesOf(runtime, setup.buffers[Math.floor(stream / streamsPerRank)]!, partBytes * streamsPerRank).slice(
      (stream % streamsPerRank) * partBytes,
      ((stream % streamsPerRank) + 1) * partBytes,
    ),
  );
  expect(got).toEqual(parts);
  for (const graph of graphs) ok(runtime, runtime.freeGraph(graph));
  for (const event of setup.events) ok(runtime, runtime.freeEvent(event));
  for (const stream of setup.streams) ok(runtime, runtime.freeStream(stream));
  for (const buffer of setup.buffers) ok(runtime, runtime.freeBuffer(buffer));
}

/** In one graph per stream only copies within the stream are ordered. */
function withinStreams(ops: readonly Op[]): Op[] {
  return ops.map((op) => (op.kind === 'copy' ? { ...op, from: op.stream % streamsPerRank } : op));
}

describe.each([
  [1, 1],
  [2, 2],
  [4, 8],
  [16, 1],
  [16, 2],
  [16, 8],
])('%i ranks, %i workers', (ranks, workers) => {
  const runs = ranks > 4 ? 8 : 30;

  it('eager work equals the model', async () => {
    await inWorld(ranks, { workers }, async (world) => {
      await fc.assert(
        fc.asyncProperty(operations(ranks * streamsPerRank), (ops) => check(world, ops, 0)),
        { numRuns: runs },
      );
    });
  });

  it('replayed graphs equal the model', async () => {
    await inWorld(ranks, { workers }, async (world) => {
      await fc.assert(
        fc.asyncProperty(operations(ranks * streamsPerRank), fc.integer({ min: 1, max: 4 }), (ops, replays) =>
          check(world, withinStreams(ops), replays),
        ),
        { numRuns: runs },
      );
    });
  });
});
