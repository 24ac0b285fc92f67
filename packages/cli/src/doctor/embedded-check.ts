// SPDX-License-Identifier: Apache-2.0
// Does the embedded backend work here: two ranks in this process, a tensor from one to the other.

import { layout, localWorld, mesh, shard, type World } from '@nccl-ext/core';
import { reshard } from '@nccl-ext/m2n';
import { binaryBytesText, timeText } from '../output/units.js';
import { type Check, failed, fixOf, ok } from './check.js';

const name = 'Embedded backend';
const report = 'Report it with the output of `nccl-ext doctor --json`.';
const elements = 1 << 16;

export async function embeddedCheck(): Promise<Check> {
  const began = performance.now();
  try {
    const world = await localWorld({ ranks: 2, backend: 'embedded', timeoutMs: 10_000 });
    try {
      const wrong = await moveOnce(world);
      if (wrong >= 0) return failed(name, `element ${wrong} arrived wrong`, report);
    } finally {
      await world.dispose();
    }
  } catch (error) {
    const { message } = error as Error;
    return failed(name, message.split('\n')[0]!, fixOf(error, report));
  }
  return ok(
    name,
    `2 ranks moved a tensor of ${binaryBytesText(elements * 4)}, ${timeText(performance.now() - began)} with start and end`,
  );
}

/** The first element that differs, -1 when none does. */
async function moveOnce(world: World): Promise<number> {
  const shape = [elements];
  const layouts = [0, 1].map((rank) =>
    layout({ mesh: mesh({ x: 1 }, { startRank: rank }), dtype: 'u32', shape, placements: { x: shard(0) } }),
  );
  const buffers = world.ranks.map((communicator) => communicator.allocate(elements * 4));
  // Multiplying by an odd number is one to one on 32-bit numbers, so that no two elements are alike.
  const expected = Uint32Array.from({ length: elements }, (_, index) => Math.imul(index, 0x9e3779b1));
  buffers[0]!.view('u32').set(expected);
  await world.run((communicator) =>
    reshard(communicator, {
      probe: {
        source: { layout: layouts[0]!, memory: communicator.rank === 0 ? buffers[0] : undefined },
        destination: { layout: layouts[1]!, memory: communicator.rank === 1 ? buffers[1] : undefined },
      },
    }),
  );
  const seen = buffers[1]!.view('u32');
  return expected.findIndex((value, index) => value !== seen[index]);
}
