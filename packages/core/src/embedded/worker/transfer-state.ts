// SPDX-License-Identifier: Apache-2.0
// A prepared transfer as a worker sees it while it executes: views and offsets of the layout, read from the program's header.

import { offsetOf } from '../memory/address.js';
import type { Space } from '../memory/space.js';
import { header, type SharedLayout, sharedLayout } from '../transfer/program-layout.js';
import { argument, type Task } from './task.js';

/** Progress of an execution: elements of the stream's progress area, from `progress.own` on. */
export const own = {
  epoch: 4,
  /** 1 + the group that is being sent, 0 between groups. */
  group: 5,
  move: 6,
  run: 7,
  unit: 8,
  /** Bytes that the missing peers had written when the wait began. */
  written: 9,
  check: 10,
  /** 1: this execution reported an error. */
  failed: 11,
  /** Words hashed so far of the check under way. */
  hashed: 12,
  /** 64-bit integer: their sum. */
  sumI64: 13,
} as const;

export interface Transfer {
  readonly program: Space;
  /** Elements of `program.f64`: the header, the groups, the moves. */
  readonly start: number;
  readonly groupsStart: number;
  readonly groups: number;
  readonly moves: number;
  /** Word of `program.i32`. */
  readonly runningWord: number;
  readonly shared: Space;
  readonly layout: SharedLayout;
  /** Elements of the shared region's 64-bit and 32-bit views for a byte offset of the layout. */
  i64Of(offset: number): number;
  i32Of(offset: number): number;
  readonly peers: readonly number[];
  readonly forwarders: readonly number[];
}

/** Opens the transfer of a task's record. */
export function openTransfer(task: Task): Transfer {
  const { spaces, ranks } = task.world;
  const address = argument(task, 1);
  const program = spaces.of(address);
  const start = offsetOf(address) / 8;
  const field = (element: number): number => program.f64[start + element]!;
  const list = (addressField: number, countField: number): readonly number[] => {
    const first = offsetOf(field(addressField)) / 8;
    return Array.from(program.f64.subarray(first, first + field(countField)));
  };
  const sharedAddress = field(header.sharedAddress);
  const sharedStart = offsetOf(sharedAddress);
  return {
    program,
    start,
    groupsStart: offsetOf(field(header.groupsAddress)) / 8,
    groups: field(header.groups),
    moves: offsetOf(field(header.movesAddress)) / 8,
    runningWord: (start + header.running) * 2,
    shared: spaces.of(sharedAddress),
    layout: sharedLayout(ranks),
    i64Of: (offset) => (sharedStart + offset) / 8,
    i32Of: (offset) => (sharedStart + offset) / 4,
    peers: list(header.peersAddress, header.peers),
    forwarders: list(header.forwardersAddress, header.forwarders),
  };
}
