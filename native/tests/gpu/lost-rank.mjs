// SPDX-License-Identifier: Apache-2.0
// One rank of four that publish weights over and over until one is lost (lost-rank.test.mjs). The others say how their publish ended, make a
// new world and send everything again. Prints a JSON object per line.
//   TEST_LOST: the rank. TEST_SIGNAL: what it sends itself in a publish, TEST_WHEN `before` or `after` its own part of the move; with
//   `outside` the test sends it. TEST_NEXT: its place in the next world, as JSON. TEST_RESTARTED: begins there.

import { init, NcclExtError } from '@nccl-ext/core';
import { Publication } from '@nccl-ext/m2n';
import { Refit } from './lost-rank-refit.mjs';

const { env } = process;
const lost = Number(env.TEST_LOST);
const next = JSON.parse(env.TEST_NEXT);
const publication = new Publication();

const say = (facts) => process.stdout.write(`${JSON.stringify(facts)}\n`);

/** In the fourth publish, when every rank has paused and the others move. */
function arm({ transfer }) {
  const { enqueue } = transfer;
  transfer.enqueue = (stream) => {
    if (env.TEST_WHEN === 'after') enqueue.call(transfer, stream);
    process.kill(process.pid, env.TEST_SIGNAL);
  };
}

async function publishUntilLost(refit) {
  for (let version = 2; ; version++) {
    if (version === 4 && refit.comm.rank === lost && env.TEST_WHEN !== 'outside') arm(refit);
    const began = performance.now();
    try {
      await refit.publish(publication, version);
    } catch (error) {
      return { error, ms: performance.now() - began };
    }
  }
}

function torn() {
  try {
    publication.assertWhole();
    return false;
  } catch (error) {
    return NcclExtError.is(error, 'ERR_TORN');
  }
}

try {
  if (env.TEST_RESTARTED === undefined) {
    const comm = await init({ backend: 'cuda' });
    const refit = await Refit.open(comm, [0, 1], [2, 3]);
    await refit.load(1);
    await refit.publish(publication, 1);
    await refit.check(1);
    say({ steady: comm.rank });
    const { error, ms } = await publishUntilLost(refit);
    const { state, version } = publication;
    const { code, peer } = error;
    say({ lost: { code, peer, message: error.message, ms, state, version: version ?? null, torn: torn() } });
    const began = performance.now();
    await comm.dispose().catch((problem) => say({ disposing: String(problem) }));
    say({ disposedMs: performance.now() - began });
  }
  const { sources, destinations, ...place } = next;
  const comm = await init({ backend: 'cuda', env: { ...env, ...place }, timeoutMs: 30_000 });
  const refit = await Refit.open(comm, sources, destinations);
  await refit.load(100);
  await refit.publish(publication, 100);
  await refit.check(100);
  publication.assertWhole();
  say({ mended: { rank: comm.rank, state: publication.state, version: publication.version } });
  await comm.dispose();
} catch (error) {
  say({
    failed: NcclExtError.is(error)
      ? `${error.code} peer ${error.peer}: ${error.message}`
      : String(error.stack),
  });
  process.exitCode = 1;
}
