// SPDX-License-Identifier: Apache-2.0
// The groups and handles of a case on all ranks of a world, and steps through them that are compared with the oracle.

import type { Graph, Stream } from '@nccl-ext/core';
import { createEpGroup, type EpConfig, type EpGroup, type EpHandle } from '@nccl-ext/ep';
import type { CaseWorld } from '../../run/case-world.js';
import type { EpCase, HandleSpec } from '../cases/ep-case.js';
import { enqueueStep, type StepTarget } from './enqueue-step.js';
import { StepMemory } from './step-memory.js';
import { type PlanOptions, planStep, type StepPlan } from './step-plan.js';

/** A step with memory on every rank. */
export interface OpenStep {
  readonly plan: StepPlan;
  readonly handleIndex: number;
  /** By rank. */
  readonly memories: readonly StepMemory[];
}

export class EpSession {
  readonly epCase: EpCase;
  readonly world: CaseWorld;
  /** By rank. */
  readonly groups: readonly EpGroup[];
  /** `handles[rank][index]`. */
  readonly handles: readonly (readonly EpHandle[])[];
  /** `streams[rank][index]`. */
  readonly streams: readonly (readonly Stream[])[];
  readonly #steps = new Set<OpenStep>();

  private constructor(epCase: EpCase, world: CaseWorld, groups: readonly EpGroup[]) {
    this.epCase = epCase;
    this.world = world;
    this.groups = groups;
    this.handles = groups.map((group) =>
      epCase.handles.map((spec) => group.createHandle(spec as HandleSpec & { alignment?: 1 })),
    );
    this.streams = world.ranks.map((communicator) =>
      Array.from({ length: epCase.streams ?? 1 }, () => communicator.createStream()),
    );
  }

  /** Collective over the world; `change` overrides the configuration of the case on all ranks. */
  static open(world: CaseWorld, epCase: EpCase, change: Partial<EpConfig> = {}): Promise<EpSession> {
    return EpSession.#create(world, epCase, () => change);
  }

  /** With memory of the caller on each rank. */
  static openWith(
    world: CaseWorld,
    epCase: EpCase,
    memoryOf: (rank: number) => NonNullable<EpConfig['memory']>,
  ): Promise<EpSession> {
    return EpSession.#create(world, epCase, (rank) => ({ memory: memoryOf(rank) }));
  }

  static async #create(
    world: CaseWorld,
    epCase: EpCase,
    changeOf: (rank: number) => Partial<EpConfig>,
  ): Promise<EpSession> {
    const groups = await Promise.all(
      world.ranks.map((communicator) =>
        createEpGroup(communicator, { ...epCase.config, ...changeOf(communicator.rank) }),
      ),
    );
    return new EpSession(epCase, world, groups);
  }

  /** Draws the step and allocates its memory. */
  openStep(epoch: number, options: PlanOptions & { readonly handleIndex?: number } = {}): OpenStep {
    const { handleIndex = epoch % this.epCase.handles.length } = options;
    const spec = this.epCase.handles[handleIndex]!;
    const plan = planStep(this.epCase, spec, epoch, options);
    const memories = this.world.ranks.map(
      (communicator) => new StepMemory(communicator, this.epCase, spec, plan),
    );
    const step = { plan, handleIndex, memories };
    this.#steps.add(step);
    return step;
  }

  /** The same memory with what another step brings; shapes must be alike. */
  redraw({ handleIndex, memories }: OpenStep, epoch: number, options: PlanOptions = {}): OpenStep {
    return {
      plan: planStep(this.epCase, this.epCase.handles[handleIndex]!, epoch, options),
      handleIndex,
      memories,
    };
  }

  /** That of a handle: the operations of one handle are ordered by a stream. */
  stream(rank: number, handleIndex: number): Stream {
    const own = this.streams[rank]!;
    return own[handleIndex % own.length]!;
  }

  target({ plan, handleIndex, memories }: OpenStep, rank: number): StepTarget {
    return {
      handle: this.handles[rank]![handleIndex]!,
      stream: this.stream(rank, handleIndex),
      memory: memories[rank]!,
      absent: (rank + plan.epoch) % 2 === 1,
    };
  }

  /** Poisons memory and uploads inputs. */
  async fill(step: OpenStep, ranks: readonly number[] = this.allRanks): Promise<void> {
    for (const rank of ranks)
      step.memories[rank]!.enqueueFill(this.stream(rank, step.handleIndex), step.plan);
    await this.synchronize(ranks);
  }

  enqueue(step: OpenStep, ranks: readonly number[] = this.allRanks): void {
    for (const rank of ranks) enqueueStep(this.epCase, this.target(step, rank));
  }

  capture(step: OpenStep): readonly Graph[] {
    return this.allRanks.map((rank) => {
      const target = this.target(step, rank);
      return target.stream.capture(() => enqueueStep(this.epCase, target));
    });
  }

  /** Reads all outputs; what differs from the oracle, or undefined. */
  async difference(step: OpenStep, ranks: readonly number[] = this.allRanks): Promise<string | undefined> {
    for (const rank of ranks) step.memories[rank]!.enqueueReads(this.stream(rank, step.handleIndex));
    await this.synchronize(ranks);
    for (const rank of ranks) {
      const difference = step.memories[rank]!.difference(step.plan);
      if (difference !== undefined) return difference;
    }
    return undefined;
  }

  /** `counts()` of every rank against the oracle. */
  async countsDifference(
    { plan, handleIndex }: OpenStep,
    ranks: readonly number[] = this.allRanks,
  ): Promise<string | undefined> {
    for (const rank of ranks) {
      const { rows, demand, perExpert, firstRow, perSource } =
        await this.handles[rank]![handleIndex]!.counts();
      const expected = plan.received[rank]!;
      const { layout } = plan.rules.rows;
      const zones = layout === 'expert-major' || layout === 'packed';
      const seen = { rows, demand, perExpert, perSource, ...(zones ? { firstRow } : {}) };
      const wanted = {
        rows: expected.total,
        demand: expected.demand,
        perExpert: expected.perExpert,
        perSource: expected.perSource,
        ...(zones ? { firstRow: expected.firstRow } : {}),
      };
      const [a, b] = [plain(seen), plain(wanted)];
      if (a !== b) return `step ${plan.epoch}, rank ${rank}: counts() gives ${a}, not ${b}`;
    }
    return undefined;
  }

  async synchronize(ranks: readonly number[] = this.allRanks): Promise<void> {
    await Promise.all(ranks.flatMap((rank) => this.streams[rank]!.map((stream) => stream.synchronize())));
  }

  async closeStep(step: OpenStep): Promise<void> {
    this.#steps.delete(step);
    for (const memory of step.memories) await memory.dispose();
  }

  async dispose(): Promise<void> {
    await Promise.all(this.groups.map((group) => group.dispose()));
    await Promise.all(this.streams.flat().map((stream) => stream.dispose()));
    for (const step of [...this.#steps]) await this.closeStep(step);
  }

  get allRanks(): readonly number[] {
    return this.world.ranks.map(({ rank }) => rank);
  }
}

function plain(counts: object): string {
  return JSON.stringify(counts, (_, value) =>
    ArrayBuffer.isView(value) ? Array.from(value as Float64Array) : value,
  );
}
