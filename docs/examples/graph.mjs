// A transfer inside a captured graph: recorded once, launched a hundred times.
import { layout, localWorld, mesh, shard } from '@nccl-ext/core';
import { createPlan, prepareTransfer } from '@nccl-ext/m2n';

const shape = [256, 256];
const source = layout({ shape, dtype: 'bf16', mesh: mesh({ tp: 2 }), placements: [shard(0)] });
const destination = layout({
  shape,
  dtype: 'bf16',
  mesh: mesh({ tp: 2 }, { startRank: 2 }),
  placements: [shard(1)],
});
const plan = createPlan({ tensors: [{ name: 'w', source, destination }] });

const world = await localWorld({ ranks: 4, backend: 'embedded' });
try {
  await world.run(async (comm) => {
    const memory = comm.allocate(source.localBytes(comm.rank) + destination.localBytes(comm.rank));
    const transfer = await prepareTransfer(comm, plan, {
      sources: { w: memory },
      destinations: { w: memory },
    });
    const stream = comm.createStream();
    const graph = stream.capture(() => transfer.enqueue(stream));
    for (let step = 0; step < 100; step++) stream.launch(graph);
    await stream.synchronize();
    if (comm.rank === 0) console.log(`${transfer.progress.completed} executions`);
  });
} finally {
  await world.dispose();
}
