// SPDX-License-Identifier: Apache-2.0
// Reads a plan that was stored as JSON, so that it can be executed without planning again, whoever wrote it.

import { NcclExtError } from '@nccl-ext/core';
import { type MoveTable, moveLoops, type TransferProgram } from '@nccl-ext/core/contract';
import * as z from 'zod';
import type { ExecutablePlan, PlannedTensor, ProgramOptions } from '../executable-plan.js';
import { Geometry } from '../geometry.js';
import { type HeldSlot, type HeldTensor, heldSlots } from '../held-tensors.js';
import { MoveTableBuilder } from '../move-table.js';
import type { SideCopy } from '../plan-request.js';
import { Side } from '../side.js';
import { checkMoves } from './check-moves.js';
import { type PlanEnvelope, planSchema } from './plan-schema.js';
import { malformed, readMoves, readRanks } from './read-moves.js';
import { readTensors } from './read-tensors.js';

/**
 * The plan that a parsed JSON value describes. It executes like a plan that was just made; figures and pictures stay
 * with the plan that wrote it.
 *
 * @throws ERR_INVALID_ARGUMENT naming the entry at fault.
 * @example
 * ```ts
 * const stored = planFromJSON(JSON.parse(JSON.stringify(plan)));
 * stored.program(0).sends.length === plan.program(0).sends.length; // true
 * ```
 */
export function planFromJSON(json: unknown): StoredPlan {
  const parsed = planSchema.safeParse(json);
  if (!parsed.success) {
    throw new NcclExtError(
      'ERR_INVALID_ARGUMENT',
      `The plan is malformed:\n${z.prettifyError(parsed.error)}`,
      {
        field: parsed.error.issues[0]?.path.join('.') ?? '',
        help: 'Write it with plan.toJSON(); docs/plan-format.md describes the format.',
      },
    );
  }
  return new StoredPlan(parsed.data);
}

/** Tensors that lie the same way share one; `slots` are by rank. */
interface KnownSide {
  readonly side: Side;
  readonly slots: Map<number, readonly HeldSlot[]>;
}

/** Made by {@link planFromJSON}; immutable. */
export class StoredPlan implements ExecutablePlan {
  /** As the document has it; ranks compare it before they execute. */
  readonly digest: string;
  readonly worldSize: number;
  readonly tensors: readonly PlannedTensor[];
  readonly #programs = new Map<number, TransferProgram>();
  readonly #sides = new Map<string, KnownSide>();
  readonly #byCopies = new Map<readonly SideCopy[], KnownSide>();
  readonly #geometry = new Geometry();

  /** @internal */
  constructor(envelope: PlanEnvelope) {
    const { digest, worldSize, programs } = envelope;
    this.digest = digest;
    this.worldSize = worldSize;
    this.tensors = readTensors(envelope);
    programs.forEach(({ rank, receivePeers, forwardPeers, sends }, i) => {
      const field = `programs[${i}]`;
      if (rank >= worldSize) throw malformed(`${field}.rank`, `must be below ${worldSize}, got ${rank}`);
      if (this.#programs.has(rank)) throw malformed(`${field}.rank`, `is ${rank}, whose program came before`);
      const table = readMoves(sends, `${field}.sends`, { worldSize, tensors: this.tensors.length });
      checkMoves(table, `${field}.sends`, rank, {
        tensors: this.tensors,
        reachOf: (side, tensor, holder) => this.#reachOf(side, tensor, holder),
      });
      this.#programs.set(rank, {
        rank,
        size: worldSize,
        digest,
        sends: table,
        receives: undefined,
        receivePeers: readRanks(receivePeers, `${field}.receivePeers`, worldSize),
        forwardPeers: readRanks(forwardPeers, `${field}.forwardPeers`, worldSize),
      });
    });
    Object.freeze(this);
  }

  /** Ranks whose programs are stored, ascending. */
  get ranks(): readonly number[] {
    return [...this.#programs.keys()].sort((x, y) => x - y);
  }

  /**
   * The stored program of a rank. `receives` needs the programs of all ranks that send to it.
   *
   * @throws ERR_INVALID_ARGUMENT when a program is not stored.
   */
  program(rank: number, { receives = false }: ProgramOptions = {}): TransferProgram {
    const program = this.#stored(rank);
    return receives ? { ...program, receives: this.#receives(program) } : program;
  }

  sourceTensorsOf(rank: number): readonly HeldTensor[] {
    return this.tensors.flatMap((tensor, i) => this.#held(tensor, i, tensor.sources, rank));
  }

  destinationTensorsOf(rank: number): readonly HeldTensor[] {
    return this.tensors.flatMap((tensor, i) => this.#held(tensor, i, tensor.destinations, rank));
  }

  #held(
    { name, slot: wanted }: PlannedTensor,
    tensor: number,
    copies: readonly SideCopy[],
    rank: number,
  ): HeldTensor[] {
    return this.#slots(copies, rank)
      .filter(({ slot }) => slot === wanted)
      .map(({ copy, requiredBytes, localShape, parts }) => {
        const { storage, pattern } = copies[copy]!;
        return { tensor, name, storage, dtype: pattern.dtype, requiredBytes, localShape, parts };
      });
  }

  #reachOf(side: 'source' | 'destination', tensor: number, rank: number): number | undefined {
    const { slot: wanted, sources, destinations } = this.tensors[tensor]!;
    const slots = this.#slots(side === 'source' ? sources : destinations, rank);
    return slots.find(({ slot }) => slot === wanted)?.requiredBytes;
  }

  #slots(copies: readonly SideCopy[], rank: number): readonly HeldSlot[] {
    const { side, slots } = this.#sideOf(copies);
    let held = slots.get(rank);
    if (!held) {
      held = heldSlots(side, rank);
      slots.set(rank, held);
    }
    return held;
  }

  #sideOf(copies: readonly SideCopy[]): KnownSide {
    let known = this.#byCopies.get(copies);
    if (known) return known;
    const text = copies
      .map(({ pattern, storage }) => `${pattern.text()}${JSON.stringify(copies.length > 1 ? storage : '')}`)
      .join();
    known = this.#sides.get(text) ?? { side: new Side(copies, this.#geometry), slots: new Map() };
    this.#sides.set(text, known);
    this.#byCopies.set(copies, known);
    return known;
  }

  #stored(rank: number): TransferProgram {
    const program = this.#programs.get(rank);
    if (program) return program;
    throw new NcclExtError('ERR_INVALID_ARGUMENT', `The stored plan has no program of rank ${rank}.`, {
      field: 'rank',
      seen: rank,
      help: 'Write it with plan.toJSON({ ranks }) for all ranks that execute it.',
    });
  }

  /** Senders in ascending order, each in the order of its own table, which sorting keeps. */
  #receives({ rank, receivePeers, forwardPeers }: TransferProgram): MoveTable {
    const table = new MoveTableBuilder();
    for (const sender of new Set([rank, ...receivePeers, ...forwardPeers])) {
      const { sends } = this.#stored(sender);
      for (let i = 0; i < sends.length; i++) {
        if (sends.peer[i] !== rank) continue;
        const loops = (values: Float64Array): number[] => [
          ...values.subarray(i * moveLoops, (i + 1) * moveLoops),
        ];
        table.add(
          { stage: sends.stage[i] as 0 | 1, peer: sender, transform: sends.transform[i]!, unitBytes: 1 },
          sends.tensor[i]!,
          sends.sourceTensor[i]!,
          {
            source: [sends.sourceOffset[i]!],
            destination: [sends.destinationOffset[i]!],
            inner: [sends.inner[i]!],
            counts: loops(sends.counts),
            sourceStrides: loops(sends.sourceStrides),
            destinationStrides: loops(sends.destinationStrides),
          },
        );
      }
    }
    return table.build();
  }
}
