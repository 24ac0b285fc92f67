// SPDX-License-Identifier: Apache-2.0
// One rank of a world that a launcher started, with both smoke kernels at small sizes: for launchers and for compute-sanitizer. Prints
// `rank r of n: ok`, or the error and exits with 1. TEST_PLANTS=1 makes rank 0's kernels write one byte behind the end of memory.

import { init, NcclExtError } from '@nccl-ext/core';
import { moduleBytes } from './smoke/common.mjs';
import { makeEp } from './smoke/ep-job.mjs';
import { makeM2n } from './smoke/m2n-job.mjs';

const epochs = 3;
const small = { numTokens: 16, hidden: 256, rows: 16, columns: 128 };

try {
  const comm = await init({ backend: 'cuda' });
  const options = { ...small, plants: process.env.TEST_PLANTS === '1' && comm.rank === 0 };
  for (const [name, make] of Object.entries({ ep: makeEp, m2n: makeM2n })) {
    const part = await make(comm, await comm.loadModule(moduleBytes(`${name}_smoke.cubin`)), options);
    const graph = part.stream.capture(() => part.enqueue());
    // Recording page-locks memory, which must not wait for a peer's kernel that waits for this rank.
    await comm.agree('recorded', { name });
    for (let epoch = 1; epoch <= epochs; epoch++) {
      part.prepare(epoch);
      if (epoch === epochs) part.stream.launch(graph);
      else part.enqueue();
      await part.stream.synchronize();
      part.check(epoch);
    }
  }
  await comm.dispose();
  process.stdout.write(`rank ${comm.rank} of ${comm.size}: ok\n`);
} catch (error) {
  process.stdout.write(
    `${NcclExtError.is(error) ? `${error.code} peer ${error.peer}: ` : ''}${error.message}\n`,
  );
  process.exitCode = 1;
}
