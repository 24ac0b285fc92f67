// SPDX-License-Identifier: Apache-2.0
// A process of four is killed or stopped while they publish weights: the others get a typed error that names it, in time, know that their
// destination is torn, and go on in a new world, where everything is sent again. Run it as it is (processes take turns on the GPU) and under
// with-mps.sh: there a client that is killed may take its peers with it, which CUDA leaves open, so TEST_MPS=1 takes only what can be stopped.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createServer } from 'node:net';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';

const program = fileURLToPath(new URL('lost-rank.mjs', import.meta.url));
const timeoutMs = 8_000;
const ranks = [0, 1, 2, 3];
const sources = [0, 1];
const mps = process.env.TEST_MPS === '1';

async function freePort() {
  const server = createServer();
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

const placeOf = (rank, size, port) => ({
  RANK: String(rank),
  WORLD_SIZE: String(size),
  LOCAL_RANK: String(rank),
  LOCAL_WORLD_SIZE: String(size),
  MASTER_ADDR: '127.0.0.1',
  MASTER_PORT: String(port),
  NCCL_EXT_PORT: String(port),
  NCCL_EXT_TOKEN: `world at ${port}`,
});

/** A process, and the objects that it printed; `saw` waits for one with a field. */
class Rank {
  constructor(env) {
    this.lines = [];
    this.waiting = [];
    this.child = spawn(process.execPath, [program], {
      env: { ...process.env, NCCL_EXT_TIMEOUT_MS: String(timeoutMs), ...env },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let rest = '';
    this.child.stdout.on('data', (chunk) => {
      const lines = `${rest}${chunk}`.split('\n');
      rest = lines.pop();
      this.lines.push(...lines.map((line) => JSON.parse(line)));
      for (const look of this.waiting) look();
    });
    this.ended = new Promise((resolve) => this.child.on('close', (...end) => resolve(end)));
    this.ended.then(() => {
      for (const look of this.waiting) look(true);
    });
  }

  saw(field) {
    return new Promise((resolve, reject) => {
      const look = (over) => {
        const found = this.lines.find((line) => field in line || 'failed' in line);
        if (found && field in found) resolve(found[field]);
        else if (found || over) reject(new Error(`no ${field}: ${JSON.stringify(this.lines)}`));
      };
      this.waiting.push(look);
      look();
    });
  }
}

/** In the world after: with a new process at the place of the lost one, or of the others alone. */
async function nextWorld(lost, restarts) {
  const port = await freePort();
  const members = restarts ? ranks : ranks.filter((rank) => rank !== lost);
  const numbersOf = (wanted) => members.flatMap((rank, number) => (wanted(rank) ? [number] : []));
  const sides = {
    sources: numbersOf((rank) => sources.includes(rank)),
    destinations: numbersOf((rank) => !sources.includes(rank)),
  };
  return (rank) => ({ ...sides, ...placeOf(members.indexOf(rank), members.length, port) });
}

async function lose({ lost, signal, when, restarts }) {
  const port = await freePort();
  const nextOf = await nextWorld(lost, restarts);
  const environmentOf = (rank) => ({
    ...placeOf(rank, ranks.length, port),
    TEST_LOST: String(lost),
    TEST_SIGNAL: signal,
    TEST_WHEN: when,
    TEST_NEXT: JSON.stringify(rank === lost && !restarts ? {} : nextOf(rank)),
  });
  const started = ranks.map((rank) => new Rank(environmentOf(rank)));
  const left = started.filter((_, rank) => rank !== lost);
  const processes = [...started];
  try {
    await Promise.all(started.map((one) => one.saw('steady')));
    if (when === 'outside') {
      await new Promise((resolve) => setTimeout(resolve, 50 + 100 * Math.random()));
      started[lost].child.kill(signal);
    }
    const began = performance.now();
    const losses = await Promise.all(left.map((one) => one.saw('lost')));
    const ms = performance.now() - began;
    assert.ok(ms < timeoutMs + 15_000, `the others heard of it after ${Math.round(ms)} ms`);
    for (const [index, loss] of losses.entries()) {
      const rank = ranks.filter((other) => other !== lost)[index];
      const text = `rank ${rank}: ${JSON.stringify(loss)}`;
      assert.ok(['ERR_RANK_LOST', 'ERR_TIMEOUT'].includes(loss.code), text);
      assert.equal(loss.peer, lost, text);
      assert.ok(loss.ms < timeoutMs + 5_000, text);
      // From outside, the process may have been lost between two moves: then nothing is torn, and the old version serves.
      if (when === 'outside' && loss.state === 'published') continue;
      assert.deepEqual([loss.state, loss.version, loss.torn], ['torn', null, true], text);
    }
    if (restarts) processes.push(new Rank({ ...environmentOf(lost), TEST_RESTARTED: '1' }));
    const mending = processes.filter((one) => one !== started[lost]);
    for (const one of mending) {
      const { state, version } = await one.saw('mended');
      assert.deepEqual([state, version], ['published', 100]);
    }
    const ends = await Promise.all(mending.map(({ ended }) => ended));
    for (const [code] of ends) assert.equal(code, 0);
  } finally {
    for (const { child } of processes) child.kill('SIGKILL');
  }
}

const losses = [
  { lost: 1, signal: 'SIGKILL', when: 'before', restarts: true },
  { lost: 2, signal: 'SIGKILL', when: 'after', restarts: true },
  { lost: 0, signal: 'SIGKILL', when: 'outside', restarts: true },
  { lost: 1, signal: 'SIGSTOP', when: 'before', restarts: false },
  { lost: 3, signal: 'SIGSTOP', when: 'outside', restarts: false },
];

describe('a process that is lost in mid-transfer', () => {
  for (const loss of losses) {
    const { lost, signal, when, restarts } = loss;
    const moment = when === 'outside' ? 'at some moment' : `${when} its own part of the move`;
    const skip = mps && signal === 'SIGKILL' && 'a killed client may end other clients of MPS';
    const mend = restarts ? 'a new process takes its place' : 'the others go on alone';
    it(`rank ${lost} by ${signal}, ${moment}; ${mend}`, { timeout: 90_000, skip }, () => lose(loss));
  }
});
