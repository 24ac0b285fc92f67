// SPDX-License-Identifier: Apache-2.0
// A group of expert parallelism as a worker sees it: views of its shared region, made once per worker.

import { contextBytes } from '../../contract/index.js';
import { contextWord, groupWord } from '../ep/ep-words.js';
import { offsetOf } from '../memory/address.js';
import type { Space } from '../memory/space.js';
import type { Spaces } from './spaces.js';

export interface EpGroup {
  readonly serial: number;
  readonly ranks: number;
  readonly experts: number;
  readonly topK: number;
  readonly hidden: number;
  readonly dtype: number;
  readonly elementBytes: number;
  readonly maxTokens: number;
  readonly budget: number;
  readonly overflow: number;
  readonly reduction: number;
  readonly timeoutMs: number;
  readonly mask: boolean;
  readonly debugFill: number;
  readonly replicaRule: number;
  readonly firstPhysical: Int32Array;
  readonly expertOf: Int32Array;
  readonly replicas: Int32Array;
  readonly replicaStart: Int32Array;
  /** The rank of each physical expert. */
  readonly rankOf: Int32Array;
  readonly active: Int32Array;
  readonly stale: Int32Array;
  readonly observed: Int32Array;
  readonly moved: Float64Array;
  /** The one word of the epoch. */
  readonly epoch: Int32Array;
  readonly space: Space;
  /** First word of context `context` of `rank`, in `space.i64` and `space.f64`. */
  contextAt(rank: number, context: number): number;
  /** Marks ids that a token has named: the number of the token that named an id last, counted by `stamp`. */
  readonly stamps: Float64Array;
  stamp: number;
  live: LiveReplicas | undefined;
}

/** The replicas on members, of one epoch. */
export interface LiveReplicas {
  readonly epoch: number;
  readonly start: Int32Array;
  readonly physical: Int32Array;
}

const known = new Map<number, EpGroup>();

export function openGroup(spaces: Spaces, address: number): EpGroup {
  const space = spaces.of(address);
  const start = offsetOf(address) / 8;
  const serial = space.f64[start + groupWord.serial]!;
  const cached = known.get(address);
  if (cached?.serial === serial && cached.space === space) return cached;
  const group = readGroup(spaces, space, start, serial);
  known.set(address, group);
  return group;
}

function readGroup(spaces: Spaces, space: Space, start: number, serial: number): EpGroup {
  const word = (element: number): number => space.f64[start + element]!;
  const ints = (element: number, length: number): Int32Array => intsAt(spaces, word(element), length);
  const ranks = word(groupWord.ranks);
  const contexts = word(groupWord.contexts);
  const dtype = word(groupWord.dtype);
  const firstPhysical = ints(groupWord.firstPhysicalAddress, ranks + 1);
  const physical = firstPhysical[ranks]!;
  const firstContext = offsetOf(word(groupWord.contextsAddress)) / 8;
  const rankOf = new Int32Array(physical);
  for (let rank = 0; rank < ranks; rank++) rankOf.fill(rank, firstPhysical[rank], firstPhysical[rank + 1]);
  return {
    serial,
    ranks,
    experts: word(groupWord.experts),
    topK: word(groupWord.topK),
    hidden: word(groupWord.hidden),
    dtype,
    elementBytes: dtype === 1 ? 4 : 2,
    maxTokens: word(groupWord.maxTokens),
    budget: word(groupWord.budget),
    overflow: word(groupWord.overflow),
    reduction: word(groupWord.reduction),
    timeoutMs: word(groupWord.timeoutMs),
    mask: word(groupWord.mask) === 1,
    debugFill: word(groupWord.debugFill),
    replicaRule: word(groupWord.replicaRule),
    firstPhysical,
    expertOf: ints(groupWord.expertOfAddress, physical),
    replicas: ints(groupWord.replicasAddress, physical),
    replicaStart: ints(groupWord.replicaStartAddress, word(groupWord.experts) + 1),
    rankOf,
    active: ints(groupWord.activeAddress, ranks),
    stale: ints(groupWord.staleAddress, ranks),
    observed: ints(groupWord.observedAddress, ranks * ranks),
    moved: floats64At(spaces, word(groupWord.movedAddress), ranks),
    epoch: space.i32.subarray((start + groupWord.epoch) * 2, (start + groupWord.epoch) * 2 + 1),
    space,
    contextAt: (rank, context) => firstContext + ((rank * contexts + context) * contextBytes(ranks)) / 8,
    stamps: new Float64Array(word(groupWord.experts)),
    stamp: 0,
    live: undefined,
  };
}

export function intsAt(spaces: Spaces, address: number, length: number): Int32Array {
  return new Int32Array(spaces.of(address).buffer, offsetOf(address), length);
}

export function floatsAt(spaces: Spaces, address: number, length: number): Float32Array {
  return new Float32Array(spaces.of(address).buffer, offsetOf(address), length);
}

export function floats64At(spaces: Spaces, address: number, length: number): Float64Array {
  return new Float64Array(spaces.of(address).buffer, offsetOf(address), length);
}

/** Word of `space.i32` that says who holds a context. */
export function holderWord(context: number): number {
  return (context + contextWord.holder) * 2;
}
