// SPDX-License-Identifier: Apache-2.0
// What a transfer writes is apart from what it reads and from what else it writes, run by run.

import { describe, expect, it } from 'vitest';
import { code, filled, inWorld, prepareAll, type TestMove } from '../harness.test-util.js';

const zeros = (bytes: number): Uint8Array => new Uint8Array(bytes);

describe('overlap', () => {
  const local = (source: number, destination: number, inner: number, tensor = 0): TestMove => ({
    from: 0,
    to: 0,
    source,
    destination,
    inner,
    tensor,
  });
  async function outcomeOf(moves: TestMove[], separate: boolean): Promise<number> {
    let result = -1;
    await inWorld(1, {}, async (world) => {
      const [a, b] = [filled(world, 0, zeros(4096)), filled(world, 0, zeros(4096))];
      const tensors = [0, 1, 2];
      const [outcome] = await prepareAll(
        world,
        moves,
        [tensors.map(() => a)],
        [tensors.map(() => (separate ? b : a))],
      );
      result = outcome!.ok ? 0 : outcome!.error.code;
    });
    return result;
  }

  it('of a destination with a source is refused, beside each other is not', async () => {
    expect(await outcomeOf([local(0, 63, 64)], false)).toBe(code('ERR_OVERLAP'));
    expect(await outcomeOf([local(0, 64, 64)], false)).toBe(0);
  });

  it('of two destination tensors is refused, even when they interleave in part', async () => {
    expect(await outcomeOf([local(0, 0, 64), local(0, 32, 64, 1)], true)).toBe(code('ERR_OVERLAP'));
    expect(await outcomeOf([local(0, 0, 64), local(0, 64, 64, 1)], true)).toBe(0);
  });

  it('of rows between rows is none', async () => {
    const rows = (destination: number, tensor: number): TestMove => ({
      ...local(0, destination, 8, tensor),
      counts: [1, 1, 10],
      sourceStrides: [0, 0, 8],
      destinationStrides: [0, 0, 16],
    });
    expect(await outcomeOf([rows(0, 0), rows(8, 1)], true)).toBe(0);
    expect(await outcomeOf([rows(0, 0), rows(7, 1)], true)).toBe(code('ERR_OVERLAP'));
  });

  it('of one source read for two tensors is none', async () => {
    expect(await outcomeOf([local(0, 0, 64), local(0, 64, 64, 1)], true)).toBe(0);
  });
});
