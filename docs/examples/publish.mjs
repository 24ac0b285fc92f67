// A training loop that publishes new weights to an engine: planned and prepared once, enqueued at every step, version set by all or none.
import { layout, localWorld, mesh, replicate, shard } from '@nccl-ext/core';
import { createPlan, Publication, prepareTransfer } from '@nccl-ext/m2n';

const shape = [64, 32];
const trainer = layout({ shape, dtype: 'f32', mesh: mesh({ tp: 2 }), placements: [shard(0)] });
const engine = layout({
  shape,
  dtype: 'bf16',
  mesh: mesh({ dp: 2 }, { startRank: 2 }),
  placements: [replicate()],
});
const plan = createPlan({ tensors: [{ name: 'weight', source: trainer, destination: engine }] });

const world = await localWorld({ ranks: 4, backend: 'embedded' });
try {
  await world.run(async (comm) => {
    const stream = comm.createStream();
    const source = comm.allocate(trainer.localBytes(comm.rank));
    const destination = comm.allocate(engine.localBytes(comm.rank));
    const transfer = await prepareTransfer(comm, plan, {
      sources: { weight: source },
      destinations: { weight: destination },
      verify: true,
    });
    const publication = new Publication();
    for (let step = 1; step <= 3; step++) {
      source.view('f32').fill(step);
      await publication.publish({ transfer, stream, version: step });
    }
    if (comm.rank === 3) console.log(`rank 3 serves version ${publication.version}`);
  });
} finally {
  await world.dispose();
}
