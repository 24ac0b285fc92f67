// SPDX-License-Identifier: Apache-2.0
// What only a GPU has is refused with a way around it; stale handles are still named as such.

import { expect, it } from 'vitest';
import { code, error, filled, inWorld, refused, streamsOf, value } from '../harness.test-util.js';

const launch = {
  grid: [1, 1, 1],
  block: [1, 1, 1],
  sharedBytes: 0,
  parameters: new Uint8Array(),
  offsets: new Int32Array(),
  guardOffset: -1,
  buffers: [],
} as const;

it('refuses memory, streams and kernels of a GPU, and says what to do instead', async () => {
  await inWorld(2, {}, async (world) => {
    const { runtime, ranks } = world;
    const rank = ranks[1]!;
    const share = { kind: 'fd', fd: 3, allocationBytes: 8, byteOffset: 0, bytes: 8 } as const;
    const [buffer, stream] = [filled(world, 1, [1]), streamsOf(world)[1]!];
    for (const outcome of [
      runtime.wrapMemory(rank, 512n, 8),
      runtime.exportMemory(buffer),
      runtime.importMemory(rank, share),
      runtime.wrapStream(rank, 512n),
      await runtime.loadModule(rank, new Uint8Array(1)),
    ]) {
      expect(error(outcome)).toMatchObject({ code: code('ERR_UNSUPPORTED'), rank: 1 });
      expect(error(outcome).help).toMatch(/or install a GPU backend/);
    }
    expect(error(runtime.kernelOf(1, 'k')).code).toBe(code('ERR_UNSUPPORTED'));
    refused(runtime, runtime.unloadModule(1), 'ERR_UNSUPPORTED');
    refused(runtime, runtime.launchKernel(stream, 1, launch), 'ERR_UNSUPPORTED');
    value(await runtime.disposeRank(rank));
    expect(error(runtime.wrapMemory(rank, 512n, 8)).code).toBe(code('ERR_DISPOSED'));
    expect(error(runtime.exportMemory(buffer)).code).toBe(code('ERR_DISPOSED'));
    refused(runtime, runtime.launchKernel(stream, 1, launch), 'ERR_DISPOSED');
  });
});

it('gives streams and windows addresses that tell them apart', async () => {
  await inWorld(2, {}, async (world) => {
    const { runtime } = world;
    const [first, second] = streamsOf(world);
    expect(runtime.streamAddress(first!)).not.toBe(runtime.streamAddress(second!));
    expect(runtime.streamAddress(999)).toBe(0n);
    expect(error(runtime.windowPeers(999)).code).toBe(code('ERR_INVALID_ARGUMENT'));
    expect(runtime.factsOf(world.ranks[0]!)).toEqual({});
  });
});
