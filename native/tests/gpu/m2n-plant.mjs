// SPDX-License-Identifier: Apache-2.0
// A transfer into memory that its owner has freed meanwhile: what m2n-planted.sh expects memcheck to find. TEST_PLANT says which way the kernel
// copies: `vector` (an odd address) or `bulk` (long aligned runs).

import { layout, localWorld, mesh, replicate } from '@nccl-ext/core';
import { createPlan, prepareTransfer } from '@nccl-ext/m2n';

const bytes = 1 << 20;
const byteOffset = process.env.TEST_PLANT === 'vector' ? 1 : 0;
const whole = layout({ shape: [bytes], dtype: 'u8', mesh: mesh({ x: 1 }), placements: [replicate()] });
const plan = createPlan({ tensors: [{ name: 'w', source: whole, destination: whole }] });

const world = await localWorld({ ranks: 1, backend: 'cuda', timeoutMs: 20_000 });
const [comm] = world.ranks;
const stream = comm.createStream();
const source = comm.allocate(bytes);
// Of another world, which alone frees memory for good.
const owner = await localWorld({ ranks: 1, backend: 'cuda' });
const owned = owner.ranks[0].allocate(bytes + 16, 'plain');
const buffer = comm.wrapMemory(owned.address, owned.bytes);
const transfer = await prepareTransfer(comm, plan, {
  sources: { w: source },
  destinations: { w: { buffer, byteOffset } },
});
stream.fill(source, 7);
await stream.synchronize();
await owner.dispose();
transfer.enqueue(stream);
await stream.synchronize();
process.stdout.write('the transfer went through\n');
process.exit(0);
