// SPDX-License-Identifier: Apache-2.0
// One rank of a world that a launcher started: barriers, a window, memory, agreement. Prints `rank r of n: ok`, or the code of
// the error and exits with 1. Rank TEST_QUITS leaves without a word before the barriers.

import { init, NcclExtError } from '@nccl-ext/core';

try {
  const comm = await init({ backend: 'cuda' });
  const { rank, size } = comm;
  await comm.agree('hello', { size });
  if (Number(process.env.TEST_QUITS ?? -1) === rank) process.kill(process.pid, 'SIGKILL');
  const stream = comm.createStream();
  const window = await comm.registerWindow(comm.allocate(100_000));
  const sent = new Uint8Array(100_000).map((_, i) => i * 7 + rank);
  const back = new Uint8Array(sent.length);
  const other = comm.allocate(sent.length, 'plain');
  const graph = stream.capture(() => {
    stream.copy({ buffer: other }, { buffer: window.buffer }, sent.length);
    stream.barrier();
  });
  stream.fill(other, 1);
  stream.upload(window.buffer, sent);
  for (let round = 0; round < 10; round++) {
    stream.barrier();
    stream.launch(graph);
  }
  stream.download(back, other);
  await stream.synchronize();
  if (Buffer.compare(sent, back) !== 0) throw new Error('bytes differ');
  await comm.dispose();
  process.stdout.write(`rank ${rank} of ${size}: ok\n`);
} catch (error) {
  process.stdout.write(
    `${NcclExtError.is(error) ? `${error.code} peer ${error.peer}: ` : ''}${error.message}\n`,
  );
  process.exitCode = 1;
}
