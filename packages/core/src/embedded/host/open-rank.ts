// SPDX-License-Identifier: Apache-2.0
// Makes a rank of a world, and gives up on one that stands still for too long.

import { rankWord } from '../control/world-layout.js';
import { ArrivalGate } from './arrival-gate.js';
import { errorRecord } from './errors.js';
import type { RankState } from './objects.js';
import { Standstill, standStill } from './standstill.js';
import type { BackendState } from './state.js';
import type { World } from './world.js';

/** Adds rank `rank` to `world`; `parent` is the rank that it is split from. */
export function openRank(
  state: BackendState,
  world: World,
  rank: number,
  parent: RankState | undefined,
): RankState {
  const member: RankState = {
    kind: 'rank',
    handle: 0,
    world,
    rank,
    base: world.rankBase(rank),
    objects: new Set(),
    parent,
    children: new Set(),
    gate: new ArrivalGate(),
    standstill: new Standstill(
      world.options.timeoutMs,
      () => world.isAwaited(rank),
      () => giveUp(member),
    ),
    disposal: undefined,
    disagreeOn: undefined,
  };
  const { i32 } = world.space;
  i32[member.base + rankWord.rank] = rank;
  i32[member.base + rankWord.origin] = parent === undefined ? rank : i32At(parent, rankWord.origin);
  world.ranks.push(member);
  parent?.children.add(member);
  state.handles.add(member);
  return member;
}

function i32At({ world, base }: RankState, word: number): number {
  return world.space.i32[base + word]!;
}

/** The host has waited for a stopped rank for too long: it drains, and stays unusable. */
function giveUp(rank: RankState): void {
  const { timeoutMs } = rank.world.options;
  rank.world.poison(
    rank.rank,
    errorRecord('ERR_TIMEOUT', 'synchronize', `rank ${rank.rank} stood still for ${timeoutMs} ms`, {
      rank: rank.rank,
      peer: rank.rank,
      help: 'Resume the rank before its deadline, or dispose the world.',
    }),
  );
  standStill(rank, false);
}
