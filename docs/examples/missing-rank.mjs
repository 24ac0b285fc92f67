// What a program sees when a rank does not come: a typed error that names it, on every rank that waits for it.
import { localWorld, NcclExtError } from '@nccl-ext/core';

const world = await localWorld({ ranks: 3, backend: 'embedded', timeoutMs: 200 });
try {
  world.faults.stop(2);
  const streams = world.ranks.map((comm) => comm.createStream());
  for (const stream of streams) stream.barrier();
  const outcomes = await Promise.allSettled(streams.slice(0, 2).map((stream) => stream.synchronize()));
  for (const [rank, { reason }] of outcomes.entries()) {
    if (NcclExtError.is(reason, 'ERR_TIMEOUT')) console.log(`rank ${rank}: rank ${reason.peer} did not come`);
  }
  world.faults.resume(2);
} finally {
  await world.dispose();
}
