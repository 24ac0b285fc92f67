// SPDX-License-Identifier: Apache-2.0
// Places the parameters of a model on one side: from rules, view and parallelism to patterns of ranks and storage names.

import type { DType } from '@nccl-ext/core';
import type { Parameter } from '../model/parameter.js';
import { denseRanks, expertRanks } from '../parallel/rank-groups.js';
import { stageOfLayer } from '../parallel/stage-of-layer.js';
import type { SideCopy } from '../plan/plan-request.js';
import type { SidePattern } from '../plan/side-pattern.js';
import type { Geometry } from './geometry.js';
import { type Grid, type PieceContext, pieceOf } from './parameter-piece.js';
import type { Rule, ViewEntry } from './rule-set.js';
import { type Target, targetsOf } from './storage-targets.js';
import { viewOf } from './view.js';

/** A copy of a parameter, or of a part of it, in one storage per rank. */
export interface PlacedCopy extends SideCopy {
  /** Position of the expert in a storage that has the local experts as its first dimension; undefined in others. */
  readonly stackIndex: number | undefined;
}

interface PlacerInput extends PieceContext {
  /** The view that names the storages. */
  readonly view: string;
}

/** What all parameters of one template, shape and dtype have in common. */
interface Kind {
  readonly shape: readonly number[];
  readonly dtype: DType;
  /** Undefined: that of the layer. */
  readonly stage: number | undefined;
  readonly grid: Grid;
  readonly targets: readonly Target[];
}

/** The stage of what every stage has. */
const everyStage = -1;

/** Places parameters one by one; equal placements are the same objects. */
export class Placer {
  readonly #input: PlacerInput;
  readonly #view: readonly ViewEntry[];
  readonly #kinds: Map<string, Kind[]> = new Map();
  readonly #ranks: Map<string, readonly number[]> = new Map();
  readonly #expertsPerGroup: number;

  constructor(input: PlacerInput) {
    this.#input = input;
    this.#view = viewOf(input.rules, input.view);
    this.#expertsPerGroup = Math.ceil(input.model.facts.experts / input.side.parallelism.ep);
  }

  /**
   * The copies of a parameter. Small work: a model has 1e5 parameters, of some dozen kinds.
   *
   * @throws ERR_RULES when there is no rule for it or the rule does not fit it, ERR_CAST when it cannot be cast.
   */
  copies(parameter: Parameter): readonly PlacedCopy[] {
    const kind = this.#kindOf(parameter);
    const { layer, expert } = parameter;
    const { pp } = this.#input.side.parallelism;
    const stage = kind.stage ?? stageOfLayer(layer!, this.#input.model.facts.layers, pp);
    const group = kind.grid === 'expert' ? Math.floor(expert! / this.#expertsPerGroup) : 0;
    const local = kind.grid === 'expert' ? expert! - group * this.#expertsPerGroup : 0;
    const copies = new Array<PlacedCopy>(kind.targets.length);
    for (let i = 0; i < copies.length; i++) {
      const { storage, stacked, geometry } = kind.targets[i]!;
      copies[i] = {
        pattern: this.#patternOf(geometry(local), kind.grid, stage, group),
        storage: storage === undefined ? parameter.name : storage(layer, expert),
        stackIndex: stacked ? local : undefined,
      };
    }
    return copies;
  }

  #patternOf(geometry: Geometry, grid: Grid, stage: number, group: number): SidePattern {
    const { pp, ep } = this.#input.side.parallelism;
    const gridNumber = grid === 'dense' ? 0 : grid === 'expert' ? 1 + group : 1 + ep;
    const place = gridNumber * (pp + 1) + stage + 1;
    return (
      geometry.patternAt(place) ??
      geometry.makePattern(place, (coordinate) => this.#ranksAt(grid, stage, group, coordinate))
    );
  }

  #ranksAt(grid: Grid, stage: number, group: number, coordinate: number): readonly number[] {
    const key = `${grid},${stage},${group},${coordinate}`;
    let ranks = this.#ranks.get(key);
    if (ranks === undefined) {
      ranks = this.#listRanks(grid, stage, group, coordinate);
      this.#ranks.set(key, ranks);
    }
    return ranks;
  }

  #listRanks(grid: Grid, stage: number, group: number, coordinate: number): readonly number[] {
    const { side } = this.#input;
    const { pp, etp } = side.parallelism;
    if (stage === everyStage) {
      return Array.from({ length: pp }, (_, i) => this.#ranksAt(grid, i, group, coordinate)).flat();
    }
    if (grid === 'dense') return denseRanks(side, stage, coordinate);
    if (grid === 'expert') return expertRanks(side, stage, group, coordinate);
    return expertRanks(side, stage, Math.floor(coordinate / etp), coordinate % etp);
  }

  #kindOf(parameter: Parameter): Kind {
    const { template, shape, dtype } = parameter;
    let kinds = this.#kinds.get(template);
    if (kinds === undefined) {
      kinds = [];
      this.#kinds.set(template, kinds);
    }
    for (const kind of kinds) if (kind.dtype === dtype && isEqual(kind.shape, shape)) return kind;
    const kind = this.#makeKind(parameter);
    kinds.push(kind);
    return kind;
  }

  #makeKind(parameter: Parameter): Kind {
    const { shape, dtype, layer } = parameter;
    const piece = pieceOf(parameter, this.#input);
    const stage = stageOfRule(piece.rule, layer, this.#input.side.parallelism.pp);
    return {
      shape,
      dtype,
      stage,
      grid: piece.grid,
      targets: targetsOf(parameter, piece, this.#view, this.#input),
    };
  }
}

function stageOfRule({ stage }: Rule, layer: number | undefined, pp: number): number | undefined {
  if (stage === 'every') return everyStage;
  if (stage === 'first') return 0;
  return stage === 'last' || layer === undefined ? pp - 1 : undefined;
}

/** Equal shapes are mostly the same array. */
function isEqual(a: readonly number[], b: readonly number[]): boolean {
  return a === b || (a.length === b.length && a.every((extent, dim) => extent === b[dim]));
}
