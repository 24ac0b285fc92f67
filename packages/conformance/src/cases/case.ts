// SPDX-License-Identifier: Apache-2.0
// What a conformance case is: data that says what moves where, or a check that needs a few lines of its own.

import type { DType, Placement, TopologyDescription } from '@nccl-ext/core';
import type { EpCase } from '../ep/cases/ep-case.js';
import type { CheckContext } from '../run/check-context.js';
import type { GroupName } from './groups.js';

/** What every case has. */
export interface CaseHeader {
  /** Unique: `group/what`. */
  readonly name: string;
  readonly group: GroupName;
  /** Ranks of the world that it needs. */
  readonly ranks: number;
  /** It needs a backend with expert parallelism. */
  readonly needsEp?: true;
  /** Public reports of users whose trouble this case shows to be absent, as `owner/repository#number`. */
  readonly reports?: readonly string[];
}

/** A mesh with placements, as JSON would write it. */
export interface SideSpec {
  /** Axis sizes by name, last axis fastest. */
  readonly axes: Readonly<Record<string, number>>;
  /** First of consecutive ranks, default 0; or `ranks`. */
  readonly startRank?: number;
  readonly ranks?: readonly number[];
  /** By axis name; dims are not negative. Axes left out replicate. */
  readonly placements: Readonly<Record<string, Placement>>;
}

/** A tensor and where it is before and after. */
export interface TensorSpec {
  /** Global extents. */
  readonly shape: readonly number[];
  /** Of the source. */
  readonly dtype: DType;
  /** Of the destination, where it differs. */
  readonly castTo?: DType;
  readonly source: SideSpec;
  readonly destination: SideSpec;
  /** How each side is stored; default: a dense storage of its own. */
  readonly sourceStored?: StoredSpec;
  readonly destinationStored?: StoredSpec;
}

/** How ranks keep their part of a tensor. */
export interface StoredSpec {
  /** Elements by which the storage is moved away from an aligned address. */
  readonly offset?: number;
  /** Elements behind every row (of the last dimension) that do not belong to the tensor. */
  readonly padding?: number;
  /** Tensors that name the same storage lie behind one another in it, as q, k and v in a fused qkv. They have one dtype. */
  readonly fusedIn?: string;
  /** Further places of the whole or of parts, each a storage of its own, as tied weights have. */
  readonly copies?: readonly SideSpec[];
}

/** Tensors that move in one transfer, how often and in which way. Every byte of every destination is compared with the oracle. */
export interface M2nCase extends CaseHeader {
  readonly kind: 'move';
  readonly tensors: readonly TensorSpec[];
  /** A second plan with memory of its own; odd epochs move it instead. */
  readonly alternate?: readonly TensorSpec[];
  readonly topology?: string | TopologyDescription;
  /** Refits, each with other values; default 1. */
  readonly repeat?: number;
  /** Launch a captured graph instead of enqueueing; `warm` runs the transfer once before it is captured. */
  readonly capture?: 'cold' | 'warm';
  /** Streams per rank that take turns; `fresh` makes one for every epoch. Default 1. */
  readonly streams?: number | 'fresh';
  /** Enqueue all epochs before waiting for the first. */
  readonly pipelined?: boolean;
  /** Hash what is sent and what arrived. */
  readonly verify?: boolean;
}

/** A check that data cannot express: it returns when it passed, and throws otherwise. */
export interface CheckCase extends CaseHeader {
  readonly kind: 'check';
  readonly run: (context: CheckContext) => Promise<void>;
  /** It runs as well where every rank is a process of its own: it treats `world.ranks` alike, or asks for their numbers. */
  readonly spread?: true;
}

/** A row of the table. */
export type ConformanceCase = M2nCase | EpCase | CheckCase;
