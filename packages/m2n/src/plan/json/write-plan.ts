// SPDX-License-Identifier: Apache-2.0
// Writes a plan as a document.

import type { TransferProgram } from '@nccl-ext/core/contract';
import type { SideCopy } from '../plan-request.js';
import type { SidePattern } from '../side-pattern.js';
import type { TransferPlan } from '../transfer-plan.js';
import {
  type CopyDocument,
  type MoveDocument,
  moveColumns,
  type PatternDocument,
  type PlanDocument,
  type ProgramDocument,
  planFormat,
  planFormatVersion,
} from './plan-document.js';

export interface PlanJSONOptions {
  /** Whose programs to include; default all ranks, or none when their programs have more than 10^5 moves together. */
  readonly ranks?: readonly number[];
}

/** Documents with all programs stay below some 20 MB. */
const movesOfAllRanks = 100_000;

export function planDocument(plan: TransferPlan, { ranks }: PlanJSONOptions): PlanDocument {
  const numbers = new Map<string, number>();
  const patterns: PatternDocument[] = [];
  const known = new Map<SidePattern, number>();
  const numberOf = (pattern: SidePattern): number => {
    let number = known.get(pattern);
    if (number === undefined) {
      const text = pattern.text();
      number = numbers.get(text);
      if (number === undefined) {
        number = patterns.push(JSON.parse(text)) - 1;
        numbers.set(text, number);
      }
      known.set(pattern, number);
    }
    return number;
  };
  const copies = (list: readonly SideCopy[]): CopyDocument[] =>
    list.map(({ pattern, storage }) => ({ pattern: numberOf(pattern), storage }));
  const tensors = plan.tensors.map(({ name, slot, sources, destinations }) => ({
    name,
    slot,
    source: copies(sources),
    destination: copies(destinations),
  }));
  return {
    format: planFormat,
    version: planFormatVersion,
    digest: plan.digest,
    worldSize: plan.worldSize,
    totals: plan.totals,
    patterns,
    tensors,
    programs: ranks
      ? [...new Set(ranks)].sort((x, y) => x - y).map((rank) => programDocument(plan.program(rank)))
      : allPrograms(plan),
  };
}

function allPrograms(plan: TransferPlan): ProgramDocument[] {
  const programs: ProgramDocument[] = [];
  let moves = 0;
  for (let rank = 0; rank < plan.worldSize; rank++) {
    const program = plan.program(rank);
    moves += program.sends.length;
    if (moves > movesOfAllRanks) return [];
    programs.push(programDocument(program));
  }
  return programs;
}

function programDocument({ rank, receivePeers, forwardPeers, sends }: TransferProgram): ProgramDocument {
  const columns = Object.keys(moveColumns).map((name) => [
    name,
    Array.from(sends[name as keyof MoveDocument]),
  ]);
  return {
    rank,
    receivePeers: [...receivePeers],
    forwardPeers: [...forwardPeers],
    sends: Object.fromEntries(columns) as MoveDocument,
  };
}
