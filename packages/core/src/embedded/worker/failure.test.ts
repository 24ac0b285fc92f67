// SPDX-License-Identifier: Apache-2.0
// Who is to blame when a rank that was waited for does not come.

import { beforeEach, describe, expect, it } from 'vitest';
import { rankWord, worldBytes } from '../control/world-layout.js';
import { errorRecord } from '../host/errors.js';
import { openSpace } from '../memory/space.js';
import { lossAmong, poisonRank } from './failure.js';
import { rankBase, type World } from './task.js';

const never = (): boolean => false;

describe('lossAmong', () => {
  let world: World;

  beforeEach(() => {
    const buffer = new SharedArrayBuffer(worldBytes(4, 0));
    const space = openSpace({ kind: 'block', id: 0, buffer, memory: undefined });
    world = { space, base: 0, ranks: 4 } as World;
  });

  const lose = (rank: number): void => {
    world.space.i32[rankBase(world, rank) + rankWord.lost] = 1;
  };
  const poison = (rank: number, code: 'ERR_RANK_LOST' | 'ERR_TIMEOUT' | 'ERR_ABORTED', peer: number): void =>
    poisonRank(world.space, rankBase(world, rank), errorRecord(code, 'transfer', 'test', { rank, peer }));

  it('is the rank that left, or the one that it waited for in vain', () => {
    expect(lossAmong(world, [1, 2, 3], never)).toBeUndefined();
    poison(2, 'ERR_RANK_LOST', 1);
    expect(lossAmong(world, [3, 2], never)).toEqual({ awaited: 2, lost: 1 });
    lose(1);
    expect(lossAmong(world, [1, 2], never)).toEqual({ awaited: 1, lost: 1 });
    poison(3, 'ERR_ABORTED', -1);
    expect(lossAmong(world, [3], never)).toBeUndefined();
    lose(3);
    expect(lossAmong(world, [3], never)).toEqual({ awaited: 3, lost: 3 });
  });

  it('is none for a rank whose own wait took too long', () => {
    poison(2, 'ERR_TIMEOUT', 1);
    expect(lossAmong(world, [2], never)).toBeUndefined();
  });

  it('is who lost a rank that this world has no number for', () => {
    poison(2, 'ERR_RANK_LOST', -1);
    expect(lossAmong(world, [2], never)).toEqual({ awaited: 2, lost: 2 });
  });

  it('does not count for what a rank did just before it was lost', () => {
    lose(1);
    poison(2, 'ERR_RANK_LOST', 1);
    expect(lossAmong(world, [1, 2], (peer) => peer === 1)).toEqual({ awaited: 2, lost: 1 });
    expect(lossAmong(world, [1, 2], () => true)).toBeUndefined();
  });
});
