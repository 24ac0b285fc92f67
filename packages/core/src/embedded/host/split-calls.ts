// SPDX-License-Identifier: Apache-2.0
// Splits a world into worlds of their own: same memory and workers; own barriers, meetings, streams and faults.

import type { ErrorRecord, Outcome, RuntimeSpi, SplitRank } from '../../contract/index.js';
import { collective, refuseAll, takeDisagreement } from './collective.js';
import { checkInteger, errorRecord, failed, isError, succeeded } from './errors.js';
import type { RankState } from './objects.js';
import { openRank } from './open-rank.js';
import type { BackendState } from './state.js';
import type { World } from './world.js';

const op = 'split';

/** What a rank brings. */
interface SplitPart {
  readonly rank: RankState;
  /** -1: it becomes part of no world. */
  readonly color: number;
  readonly key: number;
  readonly error: ErrorRecord | undefined;
}

export function splitCalls(state: BackendState): Pick<RuntimeSpi, 'splitRank'> {
  return {
    async splitRank(handle, color, key) {
      const rank = state.rank(handle, op);
      if (isError(rank)) return failed(rank);
      const error =
        checkInteger(op, 'color', color, -1, 0x7fff_ffff) ??
        checkInteger(op, 'key', key, -0x8000_0000, 0x7fff_ffff);
      return collective<SplitPart, SplitRank | undefined>(rank, {
        op,
        topic: op,
        agreed: { field: 'call', value: takeDisagreement(rank, op) ? 'another call' : op },
        part: { rank, color, key, error },
        finish: (parts) => finish(state, parts),
      });
    },
  };
}

function finish(state: BackendState, parts: readonly SplitPart[]): readonly Outcome<SplitRank | undefined>[] {
  if (parts.some(({ error }) => error !== undefined))
    return refuseAll(
      op,
      parts.map(({ error }) => error),
    );
  const groups = groupsOf(parts);
  const worlds = openWorlds(parts[0]!.rank.world, groups);
  if (isError(worlds)) return parts.map(({ rank: { rank } }) => failed({ ...worlds, rank }));
  const results = new Map<SplitPart, SplitRank>();
  for (const [i, world] of worlds.entries()) {
    groups[i]!.forEach((part, rank) => {
      const { handle } = openRank(state, world, rank, part.rank);
      results.set(part, { handle, rank, size: groups[i]!.length });
    });
    state.worlds.add(world);
    world.admit();
  }
  return parts.map((part) => succeeded(results.get(part)));
}

/** The members of each new world, by their rank in it. */
function groupsOf(parts: readonly SplitPart[]): readonly (readonly SplitPart[])[] {
  const byColor = new Map<number, SplitPart[]>();
  for (const part of parts) {
    if (part.color < 0) continue;
    const group = byColor.get(part.color);
    if (group === undefined) byColor.set(part.color, [part]);
    else group.push(part);
  }
  return [...byColor.values()].map((group) =>
    group.sort((a, b) => a.key - b.key || a.rank.rank - b.rank.rank),
  );
}

/** A world per group, or none at all. */
function openWorlds(
  parent: World,
  groups: readonly (readonly SplitPart[])[],
): readonly World[] | ErrorRecord {
  const noRoom = (detail: string, help: string): ErrorRecord =>
    errorRecord('ERR_OUT_OF_MEMORY', op, detail, { help });
  if (!parent.crew.hasRoom(groups.length))
    return noRoom('a world has too many split from it', 'Dispose those that are no longer used.');
  const worlds: World[] = [];
  for (const group of groups) {
    const world = parent.split(group.length);
    if (world === undefined) {
      for (const opened of worlds) opened.arena.release(opened.address);
      return noRoom(
        `no memory for the control words of ${groups.length} worlds`,
        'Dispose what is no longer used.',
      );
    }
    worlds.push(world);
  }
  return worlds;
}
