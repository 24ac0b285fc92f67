// SPDX-License-Identifier: Apache-2.0
// What groups check when they make handles, take memory and change their members.

import { describe, expect, it } from 'vitest';
import type { EpConfig } from '../config/ep-config.js';
import { comm, config, useWorld, world } from '../handle/fake-handle.test-util.js';
import { EpGroup } from './ep-group.js';
import { claimNothing, fakeCore } from './fake-core.test-util.js';

useWorld();

describe('handles of a group', () => {
  it('have an alignment in packed only, and a layout that the reduction knows', () => {
    const group = (change: Partial<EpConfig> = {}) =>
      new EpGroup(fakeCore(comm, { ...config, ...change }).core, claimNothing());
    expect(group().createHandle({ layout: 'packed', alignment: 128 }).alignment).toBe(128);
    const wrong = [
      ['alignment', () => group().createHandle({ layout: 'packed', alignment: 12 })],
      ['alignment', () => group().createHandle({ layout: 'flat', alignment: 8 as never })],
      ['layout', () => group().createHandle({ layout: 'ragged' as never })],
      ['layout', () => group({ reduction: 'token' }).createHandle({ layout: 'flat' })],
      ['layout', () => group({ reduction: 'token' }).createHandle({ layout: 'rank-major' })],
      ['options', () => group().createHandle(undefined as never)],
    ] as const;
    for (const [field, call] of wrong)
      expect(call).toThrow(expect.objectContaining({ code: 'ERR_INVALID_ARGUMENT', field }));
  });

  it('take memory of the caller, and give it back', async () => {
    const buffer = comm.allocate(1 << 16);
    const freed: string[] = [];
    const memory = {
      allocate: () => ({ buffer, byteOffset: 256 }),
      free: (_: unknown, purpose: string) => {
        freed.push(purpose);
      },
    };
    const group = new EpGroup(fakeCore(comm, { ...config, memory }).core, claimNothing());
    await group.createHandle({ layout: 'flat' }).dispose();
    expect(freed).toEqual(['handle']);
    const small = comm.allocate(64);
    const wrong = [
      ['ERR_OUT_OF_BOUNDS', { handle: () => small }],
      ['ERR_INVALID_ARGUMENT', { handle: () => ({ buffer, byteOffset: 8 }) }],
      ['ERR_INVALID_ARGUMENT', { handle: () => 5 as never }],
      ['ERR_FOREIGN_OBJECT', { handle: () => world.ranks[1]!.allocate(1 << 16) }],
    ] as const;
    for (const [code, source] of wrong)
      expect(() => group.createHandle({ layout: 'flat', memory: source })).toThrow(
        expect.objectContaining({ code }),
      );
    expect(group.memory().handles).toBe(0);
  });

  it('know their members', async () => {
    const masked = new EpGroup(fakeCore(comm, { ...config, mask: true }).core, claimNothing());
    expect(masked.membership).toEqual({ epoch: 0, active: [0, 1] });
    expect(masked.observed()).toEqual([1]);
    expect(await masked.changeMembership([0])).toBe(1);
    for (const active of [[1], [0, 0], [0, 2], 'all'])
      await expect(masked.changeMembership(active as never)).rejects.toMatchObject({
        code: 'ERR_INVALID_ARGUMENT',
      });
    const fixed = new EpGroup(fakeCore(comm, config).core, claimNothing());
    await expect(fixed.changeMembership([0])).rejects.toMatchObject({ code: 'ERR_INVALID_STATE' });
  });
});
