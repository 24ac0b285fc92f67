// SPDX-License-Identifier: Apache-2.0
// One plan with its memory on every rank: fills sources, poisons destinations, moves, and compares every byte with the oracle.

import {
  type Communicator,
  type DeviceBuffer,
  dtypeBytes,
  type Graph,
  NcclExtError,
  type Stream,
  singleDomain,
  type Topology,
} from '@nccl-ext/core';
import { type PrepareOptions, prepareTransfer, type Transfer, type TransferPlan } from '@nccl-ext/m2n';
import type { TensorSpec } from '../cases/case.js';
import { type CaseWorld, isWhole } from './case-world.js';
import { findDifference } from './find-difference.js';
import { type Content, dtypesOf, type Image, imageOf, renderImage } from './image.js';
import { planOf } from './plan-of.js';
import { download, type PendingRefit, pendingRefit, type RankSide, renderer } from './read-back.js';
import { Skipped } from './skipped.js';

/** Host arrays at a time for images that are larger; a multiple of every element size. */
const chunkBytes = 32 * 2 ** 20;

/** What {@link MoveSession.open} takes. */
export interface SessionOptions {
  readonly tensors: readonly TensorSpec[];
  /** Default: one domain. */
  readonly topology?: Topology;
  readonly verify?: boolean;
  /** As in `prepareTransfer`. */
  readonly sms?: number | undefined;
}

interface RankState {
  readonly communicator: Communicator;
  readonly source: RankSide;
  readonly destination: RankSide;
  transfer: Transfer | undefined;
}

/**
 * Memory for a plan on the ranks of this process, and the transfers of those that have prepared. Where the process drives every rank,
 * `ranks[r]` is rank r; lists of streams have their order.
 */
export class MoveSession {
  readonly plan: TransferPlan;
  readonly ranks: readonly RankState[];
  /** Passes that tell all shards apart: two when a dtype has one byte; shards that fill memory cannot be alike. */
  readonly passes: number;
  /** Whether one host array holds each image, those of other processes too: they must move as often. */
  readonly fitsOneChunk: boolean;
  readonly #verify: boolean;
  readonly #sms: number | undefined;
  readonly #whole: boolean;

  /** A session in which every rank has prepared. */
  static async open(world: CaseWorld, options: SessionOptions): Promise<MoveSession> {
    const session = new MoveSession(world, options);
    const prepared = await Promise.allSettled(session.ranks.map((_, rank) => session.prepareRank(rank)));
    const failed = prepared.find((result) => result.status === 'rejected');
    if (failed === undefined) return session;
    const refused = options.sms === 0 && NcclExtError.is(failed.reason, 'ERR_UNSUPPORTED');
    if (!refused) throw failed.reason;
    await session.dispose();
    throw new Skipped(`not by copy engines alone: ${failed.reason.message.split('\n')[0]}`);
  }

  constructor(world: CaseWorld, { tensors, topology, verify = false, sms }: SessionOptions) {
    this.plan = planOf(tensors, world.size, topology ?? singleDomain(world.size));
    this.#verify = verify;
    this.#sms = sms;
    this.#whole = isWhole(world);
    this.ranks = world.ranks.map((communicator) => {
      const { rank } = communicator;
      const allocate = (image: Image): RankSide => ({
        image,
        buffer: image.bytes === 0 ? undefined : communicator.allocate(image.bytes),
      });
      return {
        communicator,
        source: allocate(imageOf(tensors, 'source', rank)),
        destination: allocate(imageOf(tensors, 'destination', rank)),
        transfer: undefined,
      };
    });
    const narrow = tensors.some((tensor) => {
      const { source, destination } = dtypesOf(tensor);
      return dtypeBytes(source) === 1 || dtypeBytes(destination) === 1;
    });
    const largest = Math.max(
      ...Array.from({ length: world.size }, (_, rank) => [
        imageOf(tensors, 'source', rank).bytes,
        imageOf(tensors, 'destination', rank).bytes,
      ]).flat(),
    );
    this.fitsOneChunk = largest <= 8 * chunkBytes;
    this.passes = narrow && this.fitsOneChunk ? 2 : 1;
  }

  /** This rank's part of the collective call; `options` replaces what it passes. */
  async prepareRank(
    rank: number,
    options: PrepareOptions & { readonly plan?: TransferPlan } = {},
  ): Promise<Transfer> {
    const state = this.ranks[rank]!;
    const { plan = this.plan, ...given } = options;
    state.transfer = await prepareTransfer(state.communicator, plan, {
      sources: bindings(state.source),
      destinations: bindings(state.destination),
      verify: this.#verify,
      sms: this.#sms,
      ...given,
    });
    return state.transfer;
  }

  /** Bytes of all buffers. */
  static bytesOf(tensors: readonly TensorSpec[], ranks: number): number {
    let bytes = 0;
    for (let rank = 0; rank < ranks; rank++) {
      bytes += imageOf(tensors, 'source', rank).bytes + imageOf(tensors, 'destination', rank).bytes;
    }
    return bytes;
  }

  /**
   * Puts one refit on the streams: values of `epoch` in, move, everything out. `move` replaces the plain enqueue; `places` are the ranks
   * that take part, all by default.
   */
  enqueueRefit(
    streams: readonly Stream[],
    content: Content,
    move: (place: number, stream: Stream) => void = (place, stream) => this.enqueueMove(place, stream),
    places: readonly number[] = [...this.ranks.keys()],
  ): PendingRefit {
    const expectedOf = renderer(content);
    const downloads = places.flatMap((place) => {
      const { source, destination } = this.ranks[place]!;
      const stream = streams[place]!;
      if (source.buffer) stream.upload(source.buffer, expectedOf(source.image));
      if (destination.buffer) stream.fill(destination.buffer, content.guard);
      move(place, stream);
      return [download(source, stream), download(destination, stream)];
    });
    return pendingRefit(downloads, expectedOf);
  }

  /** Only reads what is there and compares it. */
  readBack(streams: readonly Stream[], content: Content): PendingRefit {
    const downloads = this.ranks.flatMap(({ source, destination }, rank) => [
      download(source, streams[rank]!),
      download(destination, streams[rank]!),
    ]);
    return pendingRefit(downloads, renderer(content));
  }

  /** The same in small pieces of host memory, waiting in between: for buffers that no typed array holds. */
  async runLargeRefit(streams: readonly Stream[], content: Content): Promise<string | undefined> {
    const host = new Uint8Array(chunkBytes);
    const sides = this.ranks.flatMap(({ source, destination }, rank) => [
      { ...source, stream: streams[rank]! },
      { ...destination, stream: streams[rank]! },
    ]);
    for (const { image, buffer, stream } of sides) {
      if (buffer === undefined) continue;
      if (image.side === 'destination') {
        stream.fill(buffer, content.guard);
        continue;
      }
      for (const [from, part] of chunksOf(image, host)) {
        renderImage(part, image, from, content);
        stream.upload(buffer, part, from);
        await stream.synchronize();
      }
    }
    this.enqueueAll(streams);
    await Promise.all(streams.map((stream) => stream.synchronize()));
    const expected = new Uint8Array(chunkBytes);
    for (const { image, buffer, stream } of sides) {
      if (buffer === undefined) continue;
      for (const [from, part] of chunksOf(image, host)) {
        stream.download(part, buffer, from);
        await stream.synchronize();
        const want = expected.subarray(0, part.byteLength);
        renderImage(want, image, from, content);
        const difference = findDifference(image, from, want, part);
        if (difference !== undefined) return difference;
      }
    }
    return undefined;
  }

  enqueueMove(rank: number, stream: Stream): void {
    this.transferOf(rank).enqueue(stream);
  }

  /** One more move of every rank. */
  enqueueAll(streams: readonly Stream[]): void {
    streams.forEach((stream, place) => {
      this.enqueueMove(place, stream);
    });
  }

  transferOf(rank: number): Transfer {
    const { transfer } = this.ranks[rank]!;
    if (transfer === undefined) throw new Error(`rank ${rank} has not prepared`);
    return transfer;
  }

  /** A graph of one move per rank. */
  capture(streams: readonly Stream[]): readonly Graph[] {
    return streams.map((stream, rank) => stream.capture(() => this.enqueueMove(rank, stream)));
  }

  /** What is wrong with the counters after this session's refits, or undefined: the bytes written are those that the plan foresees. */
  checkProgress(): string | undefined {
    const progress = this.ranks.map(({ communicator }, place) => ({
      rank: communicator.rank,
      ...this.transferOf(place).progress,
    }));
    const executions = progress[0]?.completed ?? 0;
    for (const { rank, completed, writtenBytes, bytesPerExecution } of progress) {
      if (completed !== executions)
        return `rank ${rank} completed ${completed} executions, another ${executions}`;
      if (writtenBytes !== executions * bytesPerExecution)
        return `${executions} executions on rank ${rank} wrote ${writtenBytes} bytes, not ${bytesPerExecution} each`;
    }
    if (!this.#whole) return undefined;
    const { wireBytes, localBytes } = this.plan.totals;
    const written = progress.reduce((sum, { writtenBytes }) => sum + writtenBytes, 0);
    if (written === executions * (wireBytes + localBytes)) return undefined;
    return `${executions} executions wrote ${written} bytes; the plan has ${wireBytes} on the wire and ${localBytes} local`;
  }

  async dispose(): Promise<void> {
    await Promise.all(this.ranks.map(({ transfer }) => transfer?.dispose()));
    for (const { source, destination } of this.ranks) {
      await source.buffer?.dispose();
      await destination.buffer?.dispose();
    }
  }
}

function bindings({ image, buffer }: RankSide): Record<string, { buffer: DeviceBuffer; byteOffset: number }> {
  if (buffer === undefined) return {};
  return Object.fromEntries(
    image.slots.map(({ storage, storageOffset }) => [storage, { buffer, byteOffset: storageOffset }]),
  );
}

function* chunksOf(image: Image, host: Uint8Array): Iterable<[from: number, part: Uint8Array]> {
  for (let from = 0; from < image.bytes; from += host.byteLength) {
    yield [from, host.subarray(0, Math.min(host.byteLength, image.bytes - from))];
  }
}
