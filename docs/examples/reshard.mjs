import { layout, localWorld, mesh, shard } from '@nccl-ext/core';
import { reshard } from '@nccl-ext/m2n';

const [trainer, engine] = [mesh({ tp: 4 }), mesh({ tp: 2 }, { startRank: 4 })];
const rows = layout({ shape: [4, 8], dtype: 'f32', mesh: trainer, placements: [shard(0)] });
const columns = layout({ shape: [4, 8], dtype: 'f32', mesh: engine, placements: [shard(1)] });

const world = await localWorld({ ranks: 6, backend: 'embedded' });
try {
  await world.run(async (comm) => {
    const memory = comm.allocate(rows.localBytes(comm.rank) + columns.localBytes(comm.rank));
    if (comm.rank < 4) memory.view('f32').fill(comm.rank); // each trainer rank holds one row
    const weight = { source: { layout: rows, memory }, destination: { layout: columns, memory } };
    await reshard(comm, { weight }); // each engine rank gets half of every row
    if (comm.rank >= 4) console.log(`rank ${comm.rank} has`, memory.view('f32').join(' '));
  });
} finally {
  await world.dispose();
}
