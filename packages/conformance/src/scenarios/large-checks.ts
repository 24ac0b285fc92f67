// SPDX-License-Identifier: Apache-2.0
// More than 2^32 bytes on every rank in seconds: nothing of that size crosses to the host. Sources repeat a block whose length is prime, so an
// offset that lost a power of two reads other bytes; every byte is hashed on both sides, and thousands of places are read back.

import { dtypeBytes, type Stream, shard } from '@nccl-ext/core';
import type { CheckCase, TensorSpec } from '../cases/case.js';
import { line } from '../cases/side.js';
import { blockKeys, mix32 } from '../oracle/mix.js';
import { streamsOf } from '../run/case-streams.js';
import { type CheckContext, requireThat } from '../run/check-context.js';
import { findDifference } from '../run/find-difference.js';
import type { Slot } from '../run/image.js';
import { MoveSession } from '../run/move-session.js';
import type { RankSide } from '../run/read-back.js';
import { check, moveRanks } from './crossed-move.js';

const reports = ['NVIDIA/nccl-extensions#15'];

/** Bytes of the block that sources repeat. */
const periodBytes = 50_331_653;

/** Bytes of one place that is read back, and how many places there are beside the special ones. */
const sampleBytes = 4096;
const samples = 2000;

/** A stream holds 256 operations. */
const batch = 200;

const guard = 0xde;

export const largeChecks: readonly CheckCase[] = [
  sampled('4.5 GiB per rank, rows to columns', {
    shape: [73_728, 65_536],
    dtype: 'bf16',
    source: line(2, shard(0)),
    destination: line(2, shard(1), 2),
  }),
  sampled('4.5 GiB per rank, odd rows to odd columns', {
    shape: [73_729, 65_530],
    dtype: 'bf16',
    source: line(2, shard(0)),
    destination: line(2, shard(1), 2),
  }),
  sampled('4.3 GB per rank, halves to halves', {
    shape: [2 ** 33 + 2],
    dtype: 'u8',
    source: line(2, shard(0)),
    destination: line(2, shard(0), 2),
  }),
];

function sampled(what: string, tensor: TensorSpec): CheckCase {
  return check('large', `${what}, hashed and sampled`, (context) => moveLarge(context, tensor), { reports });
}

async function moveLarge(context: CheckContext, tensor: TensorSpec): Promise<void> {
  await context.requireMemory(moveRanks, MoveSession.bytesOf([tensor], moveRanks));
  const world = await context.fresh({ ranks: moveRanks });
  const session = await MoveSession.open(world, { tensors: [tensor], verify: true });
  const streams = streamsOf(world);
  for (const epoch of [1, 2]) {
    const block = blockOf(epoch);
    for (const [place, { source, destination }] of session.ranks.entries()) {
      if (source.buffer) await fillSource(source, streams[place]!, block);
      if (destination.buffer) streams[place]!.fill(destination.buffer, guard);
    }
    session.enqueueAll(streams);
    await Promise.all(streams.map((stream) => stream.synchronize()));
    for (const [place, { source, destination }] of session.ranks.entries()) {
      for (const side of [source, destination]) {
        if (side.buffer) await checkSamples(side, streams[place]!, block);
      }
    }
  }
  await session.dispose();
}

/** Byte b of the tensor is byte b mod {@link periodBytes} of it. */
function blockOf(epoch: number): Uint8Array {
  const words = new Uint32Array(Math.ceil(periodBytes / 4));
  const [keyA, keyB] = blockKeys({ tensor: 0, epoch, pass: 0 }, 0);
  for (let i = 0; i < words.length; i++) words[i] = mix32(i, keyA, keyB);
  return new Uint8Array(words.buffer, 0, periodBytes);
}

/** One period from the host, then what is there behind what is there. A part of a source that is split by its first dimension is one run. */
async function fillSource({ image, buffer }: RankSide, stream: Stream, block: Uint8Array): Promise<void> {
  const { byteOffset, bytes, ...slot } = image.slots[0]!;
  const shift = firstByteOf(slot) % periodBytes;
  const rotated = new Uint8Array(periodBytes);
  rotated.set(block.subarray(shift));
  rotated.set(block.subarray(0, shift), periodBytes - shift);
  stream.fill(buffer!, guard);
  stream.upload(buffer!, rotated, byteOffset);
  for (let done = periodBytes; done < bytes; done *= 2) {
    const next = { buffer: buffer!, byteOffset: byteOffset + done };
    stream.copy(next, { buffer: buffer!, byteOffset }, Math.min(done, bytes - done));
  }
  await stream.synchronize();
}

function firstByteOf({ shard, dtypes }: Pick<Slot, 'shard' | 'dtypes'>): number {
  let first = 0;
  shard.forEachRun(0, 1, (_at, global) => {
    first = global;
  });
  return first * dtypeBytes(dtypes.source);
}

/** Reads the guards and many places of a buffer back and compares them. */
async function checkSamples({ image, buffer }: RankSide, stream: Stream, block: Uint8Array): Promise<void> {
  const slot = image.slots[0]!;
  const places = [...placesOf(slot, image.bytes)];
  for (let from = 0; from < places.length; from += batch) {
    const downloads = places.slice(from, from + batch).map(([start, length]) => {
      const seen = new Uint8Array(length);
      stream.download(seen, buffer!, start);
      return { start, seen };
    });
    await stream.synchronize();
    for (const { start, seen } of downloads) {
      const difference = findDifference(image, start, render(slot, start, seen.byteLength, block), seen);
      requireThat(difference === undefined, `${difference}`);
    }
  }
}

/** Both guards with the elements beside them, both sides of 2^31 and 2^32, ends of rows, and places drawn by lot. */
function* placesOf(slot: Slot, imageBytes: number): Iterable<[start: number, bytes: number]> {
  const { byteOffset, bytes, rowBytes } = slot;
  const size = dtypeBytes(slot.dtypes.source);
  const around = function* (local: number): Iterable<[number, number]> {
    const from = Math.max(0, Math.min(local, bytes) - sampleBytes / 2);
    const start = byteOffset + Math.floor(from / size) * size;
    yield [start, Math.min(sampleBytes, byteOffset + bytes - start)];
  };
  yield [0, byteOffset + sampleBytes];
  yield [byteOffset + bytes - sampleBytes, imageBytes - (byteOffset + bytes - sampleBytes)];
  for (const power of [31, 32]) yield* around(2 ** power);
  const rows = bytes / rowBytes;
  for (let i = 0; i < samples; i++) {
    const lot = mix32(i, 0x1234_5678, rows) / 2 ** 32;
    yield* around(i % 2 === 0 ? lot * bytes : Math.floor(lot * rows) * rowBytes);
  }
}

/** What must be in bytes [start, start + length) of an image. */
function render(slot: Slot, start: number, length: number, block: Uint8Array): Uint8Array {
  const { byteOffset, bytes, shard } = slot;
  const size = dtypeBytes(slot.dtypes.source);
  const out = new Uint8Array(length).fill(guard);
  const from = Math.max(start, byteOffset);
  const to = Math.min(start + length, byteOffset + bytes);
  shard.forEachRun((from - byteOffset) / size, (to - from) / size, (at, global, count) => {
    const first = from - start + at * size;
    for (let i = 0; i < count * size; i++) out[first + i] = block[(global * size + i) % periodBytes]!;
  });
  return out;
}
