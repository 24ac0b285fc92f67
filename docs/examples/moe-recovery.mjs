// A rank stops: the others learn which one, agree to go on without it, and take it back when it returns.
import { localWorld, NcclExtError } from '@nccl-ext/core';
import { allocateTensor, createEpGroup, hostExperts, viewTensor } from '@nccl-ext/ep';

const [ranks, H] = [4, 4]; // expert e is on rank e; every rank sends one token to all four experts
const everyone = [0, 1, 2, 3];
const survivors = [0, 1, 2];

const world = await localWorld({ ranks, backend: 'embedded' });
try {
  const members = await world.run(async (comm) => {
    const group = await createEpGroup(comm, {
      ...{ experts: ranks, topK: ranks, hidden: H, dtype: 'f32', maxTokensPerRank: 1 },
      ...{ mask: true, timeoutMs: 400 }, // a rank that does not come in time is no reason to end
    });
    const layer = group.layer({
      layout: 'expert-major',
      experts: hostExperts(({ expert, rows }) => rows.map((x) => x * (expert + 1))),
    });
    const make = (dtype, width) => allocateTensor(comm, dtype, [1, width]);
    const batch = {
      tokens: make('f32', H),
      topkIdx: make('i32', ranks),
      weights: make('f32', ranks),
      out: make('f32', H),
    };
    viewTensor(batch.tokens).fill(1);
    viewTensor(batch.topkIdx).set(everyone);
    viewTensor(batch.weights).fill(1 / ranks);
    return { group, layer, batch, stream: comm.createStream() };
  });

  /** One step of the layer on these ranks: what the first token became on each, or the error. */
  const step = (who, options) =>
    Promise.all(
      who.map(async (rank) => {
        const { layer, batch, stream } = members[rank];
        try {
          layer.enqueue(stream, { ...batch, ...options });
          await stream.synchronize();
          return viewTensor(batch.out)[0];
        } catch (error) {
          if (!NcclExtError.is(error)) throw error;
          return error.code === 'ERR_TIMEOUT' ? `rank ${error.peer} did not come` : error.code;
        }
      }),
    );
  const agree = (who) => Promise.all(who.map((rank) => members[rank].group.changeMembership(who)));
  const say = (what, values) => console.log(`${what}: ${values.join(', ')}`);

  say('all ranks', await step(everyone)); // (1 + 2 + 3 + 4) / 4
  world.faults.stop(3);
  say('rank 3 stops', await step(survivors));
  say('before they agree', await step(survivors));
  say('seen by rank 0', members[0].group.observed());

  await agree(survivors);
  say('without it', await step(survivors)); // (1 + 2 + 3) / 4: its experts are missing
  say('renormalized', await step(survivors, { renormalize: true })); // (1 + 2 + 3) / 3

  world.faults.resume(3);
  say('rank 3 is back', await step([3]));
  await agree(everyone);
  say('all ranks', await step(everyone));
} finally {
  await world.dispose();
}
