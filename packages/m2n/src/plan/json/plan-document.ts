// SPDX-License-Identifier: Apache-2.0
// The stored form of a plan, which other programs can execute: docs/plan-format.md describes it, plan.schema.json checks it.

import type { DType } from '@nccl-ext/core';
import type { PlanTotals } from '../plan-totals.js';

export const planFormat = 'nccl-ext.m2n.plan';
/** Raised when a reader of the old version would misread the new one. */
export const planFormatVersion = 1;

/** The document of `plan.toJSON()`. */
export interface PlanDocument {
  readonly format: typeof planFormat;
  readonly version: typeof planFormatVersion;
  readonly digest: string;
  readonly worldSize: number;
  readonly totals: PlanTotals;
  /** Distinct ways in which tensors lie; copies name them by index. */
  readonly patterns: readonly PatternDocument[];
  readonly tensors: readonly TensorDocument[];
  /** Programs of the ranks that were asked for, ascending by rank. */
  readonly programs: readonly ProgramDocument[];
}

export interface PatternDocument {
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly parts: readonly PartDocument[];
}

export interface PartDocument {
  /** Per dimension its runs as [start, length, stride, count]; local offsets are dense in this order. */
  readonly dims: readonly (readonly (readonly [number, number, number, number])[])[];
  readonly ranks: readonly number[];
  readonly byteOffset: number;
  readonly byteStrides: readonly number[];
}

/** An entry of the tensor list; moves name it by index. */
export interface TensorDocument {
  readonly name: string;
  /** Number of the rank's storage that the entry binds; not 0 only where a rank keeps a tensor in several storages. */
  readonly slot: number;
  readonly source: readonly CopyDocument[];
  readonly destination: readonly CopyDocument[];
}

export interface CopyDocument {
  readonly pattern: number;
  readonly storage: string;
}

export interface ProgramDocument {
  readonly rank: number;
  readonly receivePeers: readonly number[];
  readonly forwardPeers: readonly number[];
  readonly sends: MoveDocument;
}

/** Moves in columns, one entry per move; three consecutive entries per move in `counts`, `sourceStrides` and `destinationStrides`. */
export interface MoveDocument {
  readonly peer: readonly number[];
  readonly stage: readonly number[];
  readonly tensor: readonly number[];
  readonly sourceTensor: readonly number[];
  readonly sourceOffset: readonly number[];
  readonly destinationOffset: readonly number[];
  readonly inner: readonly number[];
  readonly counts: readonly number[];
  readonly sourceStrides: readonly number[];
  readonly destinationStrides: readonly number[];
  readonly transform: readonly number[];
}

/** Columns of a move table, with entries per move. */
export const moveColumns: Readonly<Record<keyof MoveDocument, number>> = {
  peer: 1,
  stage: 1,
  tensor: 1,
  sourceTensor: 1,
  sourceOffset: 1,
  destinationOffset: 1,
  inner: 1,
  counts: 3,
  sourceStrides: 3,
  destinationStrides: 3,
  transform: 1,
};
