// SPDX-License-Identifier: Apache-2.0
// Short forms for tests of the embedded backend: worlds that end themselves, outcomes that must be values, programs from lists.

import { expect } from 'vitest';
import type {
  Backend,
  ErrorRecord,
  FaultSpi,
  M2nSpi,
  MoveTable,
  Outcome,
  RankHandle,
  RuntimeSpi,
  Status,
  StreamHandle,
  TensorBindings,
  TransferHandle,
  TransferProgram,
} from '../contract/index.js';
import { moveLoops } from '../contract/index.js';
import { type ErrorCode, errorNumbers } from '../errors/codes.js';
import { createEmbeddedBackend } from './index.js';

export interface TestWorld {
  readonly backend: Backend;
  readonly runtime: RuntimeSpi;
  readonly m2n: M2nSpi;
  readonly faults: FaultSpi;
  readonly ranks: readonly RankHandle[];
  close(): Promise<void>;
}

/** A world with one backend of its own. */
export async function openWorld(
  ranks: number,
  options: { readonly workers?: number; readonly timeoutMs?: number; readonly backend?: Backend } = {},
): Promise<TestWorld> {
  const backend = options.backend ?? createEmbeddedBackend();
  const { runtime } = backend;
  const handles = value(
    await runtime.createLocalRanks({
      ranks,
      workers: options.workers ?? 0,
      timeoutMs: options.timeoutMs ?? 10_000,
      sms: 0,
    }),
  );
  return {
    backend,
    runtime,
    m2n: backend.m2n!,
    faults: backend.faults!,
    ranks: handles,
    close: () => backend.dispose(),
  };
}

/** Runs `body` in a world and closes it whatever happens. */
export async function inWorld(
  ranks: number,
  options: { readonly workers?: number; readonly timeoutMs?: number; readonly backend?: Backend },
  body: (world: TestWorld) => Promise<void>,
): Promise<void> {
  const world = await openWorld(ranks, options);
  try {
    await body(world);
  } finally {
    await world.close();
  }
}

export function value<T>(outcome: Outcome<T>): T {
  if (!outcome.ok) throw new Error(`${outcome.error.op}: ${outcome.error.detail}`);
  return outcome.value;
}

export function error(outcome: Outcome<unknown>): ErrorRecord {
  if (outcome.ok) throw new Error('an error was expected');
  return outcome.error;
}

export function code(name: ErrorCode): number {
  return errorNumbers[name];
}

/** Expects success of a status call. */
export function ok(runtime: RuntimeSpi, status: Status): void {
  if (status !== 0) throw new Error(`${runtime.lastError().op}: ${runtime.lastError().detail}`);
}

/** Expects a status call to fail with `name`; returns its record. */
export function refused(runtime: RuntimeSpi, status: Status, name: ErrorCode): ErrorRecord {
  expect(status).toBe(code(name));
  expect(runtime.lastError().code).toBe(code(name));
  return runtime.lastError();
}

/** The bytes of a buffer. */
export function bytesOf(runtime: RuntimeSpi, buffer: number, length: number): Uint8Array {
  const view = value(runtime.mapBuffer(buffer));
  return new Uint8Array(view.buffer, view.byteOffset, length);
}

/** A buffer with content. */
export function filled(world: TestWorld, rank: number, content: ArrayLike<number>): number {
  const buffer = value(world.runtime.allocate(world.ranks[rank]!, content.length, 'symmetric'));
  bytesOf(world.runtime, buffer, content.length).set(content);
  return buffer;
}

export function streamsOf(world: TestWorld): readonly StreamHandle[] {
  return world.ranks.map((rank) => value(world.runtime.createStream(rank)));
}

/** One strided move; what is left out is one contiguous run. */
export interface TestMove {
  readonly from: number;
  readonly to: number;
  readonly tensor?: number;
  /** Default: `tensor`. */
  readonly sourceTensor?: number;
  readonly stage?: number;
  readonly source?: number;
  readonly destination?: number;
  readonly inner: number;
  readonly counts?: readonly [number, number, number];
  readonly sourceStrides?: readonly [number, number, number];
  readonly destinationStrides?: readonly [number, number, number];
  readonly transform?: number;
}

function moveTable(moves: readonly TestMove[], peer: 'from' | 'to'): MoveTable {
  const sorted = moves
    .map((move, index) => ({ move, index }))
    .sort(
      (a, b) =>
        (a.move.stage ?? 0) - (b.move.stage ?? 0) ||
        a.move[peer] - b.move[peer] ||
        (a.move.tensor ?? 0) - (b.move.tensor ?? 0) ||
        a.index - b.index,
    )
    .map(({ move }) => move);
  const loops = (field: 'counts' | 'sourceStrides' | 'destinationStrides', none: number): Float64Array =>
    Float64Array.from(sorted.flatMap((move) => [...(move[field] ?? new Array(moveLoops).fill(none))]));
  return {
    length: sorted.length,
    peer: Int32Array.from(sorted, (move) => move[peer]),
    stage: Uint8Array.from(sorted, (move) => move.stage ?? 0),
    tensor: Int32Array.from(sorted, (move) => move.tensor ?? 0),
    sourceTensor: Int32Array.from(sorted, (move) => move.sourceTensor ?? move.tensor ?? 0),
    sourceOffset: Float64Array.from(sorted, (move) => move.source ?? 0),
    destinationOffset: Float64Array.from(sorted, (move) => move.destination ?? 0),
    inner: Float64Array.from(sorted, (move) => move.inner),
    counts: loops('counts', 1),
    sourceStrides: loops('sourceStrides', 0),
    destinationStrides: loops('destinationStrides', 0),
    transform: Uint16Array.from(sorted, (move) => move.transform ?? 0),
  };
}

/** The program of every rank. */
export function programs(size: number, moves: readonly TestMove[]): readonly TransferProgram[] {
  const peers = (rank: number, stage: number): Int32Array =>
    Int32Array.from(
      [
        ...new Set(
          moves
            .filter((move) => move.to === rank && move.from !== rank && (move.stage ?? 0) === stage)
            .map((move) => move.from),
        ),
      ].sort((a, b) => a - b),
    );
  return Array.from({ length: size }, (_, rank) => ({
    rank,
    size,
    digest: 'test plan',
    sends: moveTable(
      moves.filter((move) => move.from === rank),
      'to',
    ),
    receives: moveTable(
      moves.filter((move) => move.to === rank),
      'from',
    ),
    receivePeers: peers(rank, 0),
    forwardPeers: peers(rank, 1),
  }));
}

export function bind(buffers: readonly number[], byteOffset: readonly number[] = []): TensorBindings {
  return {
    buffer: Float64Array.from(buffers),
    byteOffset: Float64Array.from(buffers, (_, i) => byteOffset[i] ?? 0),
  };
}

/** Prepares on all ranks; `sources[rank]` and `destinations[rank]` list buffers by tensor. */
export function prepareAll(
  world: TestWorld,
  moves: readonly TestMove[],
  sources: readonly (readonly number[])[],
  destinations: readonly (readonly number[])[],
  verify = false,
): Promise<readonly Outcome<TransferHandle>[]> {
  const plan = programs(world.ranks.length, moves);
  return Promise.all(
    world.ranks.map((handle, rank) =>
      world.m2n.prepareTransfer(handle, {
        program: plan[rank]!,
        sources: bind(sources[rank]!),
        destinations: bind(destinations[rank]!),
        verify,
        path: 'auto',
      }),
    ),
  );
}
