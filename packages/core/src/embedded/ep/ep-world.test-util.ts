// SPDX-License-Identifier: Apache-2.0
// Worlds with a group of expert parallelism for tests: memory for groups, handles and tensors, and calls on all ranks.

import {
  absentRange,
  callBytes,
  contextBytes,
  type EpCounter,
  type EpDispatchCall,
  type EpGroupConfig,
  type EpGroupLayout,
  type EpHandleLayout,
  type EpLayout,
  type EpRange,
  type EpRouteCall,
  type EpSpi,
  epAlignment,
  maxEpCalls,
} from '../../contract/index.js';
import { dtypeBytes, dtypeCode, type FloatDType } from '../../dtype/dtype.js';
import { bytesOf, ok, streamsOf, type TestWorld, value } from '../harness.test-util.js';

export interface Shape {
  readonly ranks: number;
  readonly experts: number;
  readonly topK: number;
  readonly hidden: number;
  readonly dtype: 'f32' | 'f16' | 'bf16';
  readonly maxTokens: number;
}

export type GroupOptions = Partial<
  Pick<
    EpGroupConfig,
    | 'receiveBudget'
    | 'overflow'
    | 'reduction'
    | 'contexts'
    | 'timeoutMs'
    | 'mask'
    | 'debugFill'
    | 'replicaRule'
    | 'agreed'
  >
> & { /** Experts by rank. */ readonly placement?: readonly (readonly number[])[] };

const aligned = (bytes: number): number => Math.ceil(Math.max(1, bytes) / epAlignment) * epAlignment;

export function placementOf(shape: Shape): readonly (readonly number[])[] {
  return Array.from({ length: shape.ranks }, (_, rank) =>
    Array.from({ length: shape.experts }, (_, expert) => expert).filter(
      (expert) => Math.floor((expert * shape.ranks) / shape.experts) === rank,
    ),
  );
}

export function groupLayout(shape: Shape, contexts: number): EpGroupLayout {
  const size = contexts * contextBytes(shape.ranks);
  return {
    bytes: aligned(size) + maxEpCalls * callBytes,
    contexts: { byteOffset: 0, bytes: size },
    calls: { byteOffset: aligned(size), bytes: maxEpCalls * callBytes },
  };
}

export function handleLayout(shape: Shape, localExperts: number): EpHandleLayout {
  const entries = aligned(shape.maxTokens * shape.topK * 4);
  const slots = aligned(shape.ranks * shape.maxTokens * shape.topK * 4);
  const counts = (2 * localExperts + shape.ranks + 8) * 8;
  return {
    bytes: 2 * entries + slots + counts,
    experts: { byteOffset: 0, bytes: entries },
    weights: { byteOffset: entries, bytes: entries },
    slots: { byteOffset: 2 * entries, bytes: slots },
    counts: { byteOffset: 2 * entries + slots, bytes: counts },
  };
}

/** A world with one group, a stream per rank, and buffers that are freed with it. */
export class EpWorld {
  readonly world: TestWorld;
  readonly ep: EpSpi;
  readonly shape: Shape;
  readonly placement: readonly (readonly number[])[];
  readonly streams: readonly number[];
  groups: readonly number[] = [];
  readonly #buffers = new Set<number>();

  private constructor(world: TestWorld, shape: Shape, options: GroupOptions) {
    this.world = world;
    this.ep = world.backend.ep!;
    this.shape = shape;
    this.placement = options.placement ?? placementOf(shape);
    this.streams = streamsOf(world);
  }

  static async open(world: TestWorld, shape: Shape, options: GroupOptions = {}): Promise<EpWorld> {
    const self = new EpWorld(world, shape, options);
    const configs = world.ranks.map((_, rank) => self.config(rank, options));
    self.groups = (
      await Promise.all(world.ranks.map((handle, rank) => self.ep.createEpGroup(handle, configs[rank]!)))
    ).map(value);
    return self;
  }

  route(rank: number, handle: number, call: EpRouteCall): void {
    ok(this.world.runtime, this.ep.enqueueRoute(handle, this.streams[rank]!, call));
  }

  dispatch(rank: number, handle: number, call: EpDispatchCall): void {
    ok(this.world.runtime, this.ep.enqueueDispatch(handle, this.streams[rank]!, call));
  }

  config(rank: number, options: GroupOptions = {}): EpGroupConfig {
    const { shape, placement } = this;
    const first = [0];
    for (const list of placement) first.push(first.at(-1)! + list.length);
    const contexts = options.contexts ?? 4;
    const layout = groupLayout(shape, contexts);
    return {
      agreed: options.agreed ?? '{"name":"test"}',
      experts: shape.experts,
      firstPhysical: Int32Array.from(first),
      expertOf: Int32Array.from(placement.flat()),
      replicaRule: options.replicaRule ?? 'by-token',
      topK: shape.topK,
      hidden: shape.hidden,
      dtype: dtypeCode(shape.dtype),
      maxTokensPerRank: shape.maxTokens,
      receiveBudget: options.receiveBudget ?? 0,
      overflow: options.overflow ?? 'error',
      reduction: options.reduction ?? 'rank',
      expand: 'auto',
      sms: 0,
      contexts,
      timeoutMs: options.timeoutMs ?? 10_000,
      mask: options.mask ?? false,
      debugFill: options.debugFill ?? -1,
      layout,
      memory: this.allocate(rank, layout.bytes),
    };
  }

  local(rank: number): number {
    return this.placement[rank]!.length;
  }

  handle(rank: number, layout: EpLayout, alignment = 1): number {
    const sections = handleLayout(this.shape, this.local(rank));
    return value(
      this.ep.createEpHandle(this.groups[rank]!, {
        layout,
        alignment,
        memory: this.allocate(rank, sections.bytes),
        sections,
      }),
    );
  }

  handles(layout: EpLayout, alignment = 1): readonly number[] {
    return this.groups.map((_, rank) => this.handle(rank, layout, alignment));
  }

  allocate(rank: number, bytes: number): EpRange {
    if (bytes === 0) return absentRange;
    const buffer = value(this.world.runtime.allocate(this.world.ranks[rank]!, bytes, 'symmetric'));
    this.#buffers.add(buffer);
    return { buffer, byteOffset: 0 };
  }

  /** A buffer with the content of a typed array. */
  put(rank: number, content: ArrayBufferView): EpRange {
    const range = this.allocate(rank, content.byteLength);
    if (content.byteLength > 0)
      this.bytes(range, content.byteLength).set(
        new Uint8Array(content.buffer, content.byteOffset, content.byteLength),
      );
    return range;
  }

  ids(rank: number, content: Int32Array): EpCounter {
    return { ...this.put(rank, content), entryBytes: 4 };
  }

  counter(rank: number, entries: number, entryBytes: 4 | 8 = 4): EpCounter {
    return { ...this.allocate(rank, entries * entryBytes), entryBytes };
  }

  bytes(range: EpRange, length: number): Uint8Array {
    if (length === 0) return new Uint8Array(0);
    return bytesOf(this.world.runtime, range.buffer, range.byteOffset + length).subarray(range.byteOffset);
  }

  /** A copy of f32 content. */
  floats(range: EpRange, length: number): Float32Array {
    return new Float32Array(this.bytes(range, length * 4).slice().buffer);
  }

  ints(counter: EpCounter, length: number): number[] {
    const bytes = this.bytes(counter, length * counter.entryBytes).slice();
    return counter.entryBytes === 4
      ? [...new Int32Array(bytes.buffer)]
      : [...new BigInt64Array(bytes.buffer)].map(Number);
  }

  /** Frees every buffer that was allocated here and is still there. */
  release(): void {
    for (const buffer of this.#buffers) this.world.runtime.freeBuffer(buffer);
    this.#buffers.clear();
  }

  free(...ranges: readonly EpRange[]): void {
    for (const { buffer } of ranges)
      if (buffer !== 0 && this.#buffers.delete(buffer)) this.world.runtime.freeBuffer(buffer);
  }

  /** Outcomes of all streams. */
  synchronize() {
    return Promise.all(this.streams.map((stream) => this.world.runtime.synchronize(stream)));
  }

  async finish(): Promise<void> {
    for (const outcome of await this.synchronize()) value(outcome);
  }
}

export const absentCounter: EpCounter = { ...absentRange, entryBytes: 4 };

export function rowBytesOf({ hidden, dtype }: Shape): number {
  return hidden * dtypeBytes(dtype as FloatDType);
}
