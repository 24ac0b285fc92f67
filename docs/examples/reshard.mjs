import { layout, localWorld, mesh, shard } from '@nccl-ext/core';
import { reshard } from '@nccl-ext/m2n';

const shape = [4, 8];
const rows = layout({ shape, dtype: 'f32', mesh: mesh({ tp: 4 }), placements: [shard(0)] });
const columns = layout({
  shape,
  dtype: 'f32',
  mesh: mesh({ tp: 2 }, { startRank: 4 }),
  placements: [shard(1)],
});

const world = await localWorld({ ranks: 6, backend: 'embedded' });
try {
  await world.run(async (comm) => {
    const memory = comm.allocate(rows.localBytes(comm.rank) + columns.localBytes(comm.rank));
    if (comm.rank < 4) memory.view('f32').fill(comm.rank); // each trainer rank holds one row
    await reshard(comm, {
      weight: { source: { layout: rows, memory }, destination: { layout: columns, memory } },
    });
    if (comm.rank >= 4) console.log(`rank ${comm.rank} has`, memory.view('f32').join(' ')); // each engine rank: half of every row
  });
} finally {
  await world.dispose();
}
