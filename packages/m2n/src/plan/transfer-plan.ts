// SPDX-License-Identifier: Apache-2.0
// What users hold of a plan: its name, its figures, the program of any rank, and pictures of it.

import { NcclExtError, type Topology } from '@nccl-ext/core';
import type { TransferProgram } from '@nccl-ext/core/contract';
import { nearestName } from '@nccl-ext/core/extend';
import { type Classes, countPatterns } from './build-classes.js';
import type { ExecutablePlan, PlannedTensor, ProgramOptions } from './executable-plan.js';
import { PlanExplanation } from './explain/plan-explanation.js';
import { type HeldSlot, type HeldTensor, heldSlots } from './held-tensors.js';
import type { PlanDocument } from './json/plan-document.js';
import { type PlanJSONOptions, planDocument } from './json/write-plan.js';
import { copiesOf, type NormalisedRequest, type SideField } from './normalise-request.js';
import type { PlanContext } from './plan-class.js';
import type { PlanTotals } from './plan-totals.js';
import { rankProgram } from './rank-program.js';
import { heatMap } from './svg/heat-map.js';
import { tilesOf } from './svg/tiles.js';

export type { PlannedTensor } from './executable-plan.js';
export type { HeldTensor } from './held-tensors.js';

/** @internal What a plan is made of. */
export interface PlanState {
  readonly normalised: NormalisedRequest;
  readonly context: PlanContext;
  readonly classes: Classes;
  readonly totals: PlanTotals;
}

/** Immutable; made by `createPlan`. */
export class TransferPlan implements ExecutablePlan {
  /** Hex SHA-256 of the normalised request and the planner's version. */
  readonly digest: string;
  readonly worldSize: number;
  readonly topology: Topology;
  readonly totals: PlanTotals;
  readonly #state: PlanState;
  #tensors: readonly PlannedTensor[] | undefined;
  #patterns: number | undefined;
  #explanation: PlanExplanation | undefined;

  /** @internal */
  constructor(state: PlanState) {
    this.#state = state;
    this.digest = state.normalised.digest;
    this.worldSize = state.normalised.worldSize;
    this.topology = state.normalised.topology;
    this.totals = state.totals;
    Object.freeze(this);
  }

  /** The tensor list; `MoveTable.tensor` is an index into it. One entry per requested tensor, in their order, unless ranks keep a tensor in several storages. */
  get tensors(): readonly PlannedTensor[] {
    this.#tensors ??= this.#list();
    return this.#tensors;
  }

  /** Distinct pairs of geometries, whatever the rank numbers. */
  get patterns(): number {
    this.#patterns ??= countPatterns(this.#state.classes.classes);
    return this.#patterns;
  }

  /**
   * What a rank executes; computed at each call. Ranks on neither side have an empty program.
   *
   * @throws ERR_INVALID_ARGUMENT for a rank outside the world.
   */
  program(rank: number, options: ProgramOptions = {}): TransferProgram {
    this.#requireRank(rank);
    const { context, classes } = this.#state;
    return rankProgram(
      context,
      classes.classes,
      { rank, size: this.worldSize, digest: this.digest },
      options,
    );
  }

  /**
   * What a rank reads from, ascending by tensor.
   *
   * @throws ERR_INVALID_ARGUMENT for a rank outside the world.
   */
  sourceTensorsOf(rank: number): readonly HeldTensor[] {
    return this.#held(rank, 'source');
  }

  /**
   * What a rank writes to, ascending by tensor.
   *
   * @throws ERR_INVALID_ARGUMENT for a rank outside the world.
   */
  destinationTensorsOf(rank: number): readonly HeldTensor[] {
    return this.#held(rank, 'destination');
  }

  /** Bytes per link against the bounds, busiest ranks, who sends to whom, the bottleneck and the predicted time; `toString()` says it in words. */
  explain(): PlanExplanation {
    const { context, classes, normalised } = this.#state;
    this.#explanation ??= new PlanExplanation({
      digest: this.digest,
      worldSize: this.worldSize,
      topology: this.topology,
      patterns: this.patterns,
      totals: this.totals,
      context,
      classes: classes.classes,
      nameOf: (entry) => normalised.tensors[requestOf(classes.entryOf, entry)]!.name,
    });
    return this.#explanation;
  }

  /**
   * The plan as a document that other programs can execute (docs/plan-format.md), also for `JSON.stringify(plan)`.
   *
   * @throws ERR_INVALID_ARGUMENT for a rank outside the world.
   */
  toJSON(options: PlanJSONOptions | string = {}): PlanDocument {
    return planDocument(this, typeof options === 'string' ? {} : options);
  }

  /**
   * A picture as SVG text: who sends what to whom, or with `tensor` how that tensor is cut before and after.
   *
   * @throws ERR_INVALID_ARGUMENT when no tensor has the name.
   */
  toSVG({ tensor }: { readonly tensor?: string } = {}): string {
    if (tensor === undefined) return heatMap(this.explain());
    const { normalised, classes } = this.#state;
    const request = normalised.tensors.findIndex(({ name }) => name === tensor);
    if (request < 0) {
      throw new NcclExtError('ERR_INVALID_ARGUMENT', `The plan has no tensor ${JSON.stringify(tensor)}.`, {
        field: 'tensor',
        seen: tensor,
        help: tensorHelp(
          tensor,
          normalised.tensors.map(({ name }) => name),
        ),
      });
    }
    const { source, destination } = classes.classes[classes.classOf[request]!]!;
    return tilesOf(tensor, source, destination);
  }

  #held(rank: number, field: SideField): readonly HeldTensor[] {
    this.#requireRank(rank);
    const { normalised, classes } = this.#state;
    const slots: readonly (readonly HeldSlot[])[] = classes.classes.map((cls) => heldSlots(cls[field], rank));
    const out: HeldTensor[] = [];
    normalised.tensors.forEach((tensor, request) => {
      for (const { slot, copy, ...held } of slots[classes.classOf[request]!]!) {
        const { storage, pattern } = copiesOf(tensor, field)[copy]!;
        const entry = classes.entryOf[request]! + slot;
        out.push({ tensor: entry, name: tensor.name, storage, dtype: pattern.dtype, ...held });
      }
    });
    return out;
  }

  #list(): PlannedTensor[] {
    const { normalised, classes } = this.#state;
    const out: PlannedTensor[] = [];
    for (let request = 0; request < normalised.tensors.length; request++) {
      const tensor = normalised.tensors[request]!;
      const { source, destination } = classes.classes[classes.classOf[request]!]!;
      const sources = copiesOf(tensor, 'source');
      const destinations = copiesOf(tensor, 'destination');
      for (let slot = 0; slot < Math.max(source.slots, destination.slots); slot++) {
        out.push({
          name: tensor.name,
          request,
          slot,
          shape: source.shape,
          sourceDType: source.dtype,
          destinationDType: destination.dtype,
          sources,
          destinations,
        });
      }
    }
    return out;
  }

  #requireRank(rank: number): void {
    if (Number.isInteger(rank) && rank >= 0 && rank < this.worldSize) return;
    throw new NcclExtError(
      'ERR_INVALID_ARGUMENT',
      `rank must be from 0 to ${this.worldSize - 1}, got ${rank}.`,
      {
        field: 'rank',
        expected: `0..${this.worldSize - 1}`,
        seen: rank,
      },
    );
  }
}

/** The requested tensor to which an entry of the list belongs: the last one that begins at or before it. */
function requestOf(entryOf: Int32Array, entry: number): number {
  let low = 0;
  let high = entryOf.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (entryOf[middle]! <= entry) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

function tensorHelp(name: string, names: readonly string[]): string {
  const nearest = nearestName(name, names);
  if (nearest !== undefined) return `Did you mean ${JSON.stringify(nearest)}?`;
  return `It has ${names.length}: ${names.slice(0, 3).join(', ')}${names.length > 3 ? ', ...' : ''}.`;
}
