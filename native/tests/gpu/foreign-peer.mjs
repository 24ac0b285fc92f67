// SPDX-License-Identifier: Apache-2.0
// Another process for foreign-memory.test.mjs: does what each message asks with memory of its own or of the test, and answers.

import { localWorld } from '@nccl-ext/core';

const world = await localWorld({ ranks: 1, backend: 'cuda' });
const [comm] = world.ranks;
const stream = comm.createStream();
const owned = [];

async function bytesOf(buffer) {
  const bytes = new Uint8Array(buffer.bytes);
  stream.download(bytes, buffer);
  await stream.synchronize();
  return bytes;
}

async function write(buffer, bytes) {
  stream.upload(buffer, bytes);
  await stream.synchronize();
}

const answers = {
  /** Memory of this process that holds `bytes`. */
  async own({ kind, bytes }) {
    const buffer = comm.allocate(bytes.length, kind);
    await write(buffer, bytes);
    return { index: owned.push(buffer) - 1, share: buffer.share() };
  },
  async read({ index }) {
    return { bytes: await bytesOf(owned[index]) };
  },
  /** What memory of the test holds; then writes `bytes` there. */
  async replace({ share, bytes }) {
    const buffer = comm.importMemory(share);
    const before = await bytesOf(buffer);
    await write(buffer, bytes);
    await buffer.dispose();
    return { bytes: before };
  },
  async end() {
    await world.dispose();
    return {};
  },
};

process.on('message', async ({ ask, ...rest }) => {
  const answer = await answers[ask](rest).catch(({ code, message }) => ({ error: `${code}: ${message}` }));
  process.send(answer, () => ask === 'end' && process.exit());
});
process.send({});
