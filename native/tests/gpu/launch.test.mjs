// SPDX-License-Identifier: Apache-2.0
// One rank per process, as launchers start them, and what can go wrong between them: a typed error on every rank in time.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createServer } from 'node:net';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';

const program = fileURLToPath(new URL('rank.mjs', import.meta.url));
const timeoutMs = 8_000;

async function freePort() {
  const server = createServer();
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** Runs one process per row of variables; resolves with their exit codes, output and the time they took. */
async function launch(rows, timeout = timeoutMs) {
  const port = await freePort();
  return Promise.all(
    rows.map(async (row, index) => {
      const { RANK = index, WORLD_SIZE = rows.length, delayMs = 0, ...rest } = row;
      const size = { WORLD_SIZE, LOCAL_WORLD_SIZE: WORLD_SIZE };
      const place = { RANK, LOCAL_RANK: RANK, MASTER_ADDR: '127.0.0.1', NCCL_EXT_PORT: port };
      await new Promise((resolve) => setTimeout(resolve, delayMs));
      const begun = performance.now();
      const child = spawn(process.execPath, [program], {
        env: { ...process.env, ...size, ...place, MASTER_PORT: port, NCCL_EXT_TIMEOUT_MS: timeout, ...rest },
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      let output = '';
      child.stdout.on('data', (chunk) => {
        output += chunk;
      });
      const [code, signal] = await new Promise((resolve) => child.on('close', (...end) => resolve(end)));
      return { code, signal, output: output.trim(), ms: performance.now() - begun };
    }),
  );
}

const sound = (size) => Array.from({ length: size }, (_, rank) => `rank ${rank} of ${size}: ok`);

function allFail(ended, pattern) {
  for (const { code, output, ms } of ended) {
    assert.match(output, pattern);
    assert.equal(code, 1);
    assert.ok(ms < timeoutMs + 25_000, `${ms} ms`);
  }
}

describe('processes', () => {
  for (const size of [1, 2, 4]) {
    it(`${size} of them are a world`, { timeout: 120_000 }, async () => {
      const ended = await launch(Array(size).fill({}), 60_000);
      assert.deepEqual(
        ended.map(({ output }) => output),
        sound(size),
      );
    });
  }

  it('wait for one that is late', { timeout: 120_000 }, async () => {
    const ended = await launch([{}, { delayMs: 4000 }], 60_000);
    assert.deepEqual(
      ended.map(({ output }) => output),
      sound(2),
    );
  });

  it('time out when one never starts', { timeout: 60_000 }, async () => {
    allFail(await launch([{ WORLD_SIZE: 3 }, { WORLD_SIZE: 3 }]), /^ERR_TIMEOUT/);
  });

  it('time out when rank 0 cannot be reached', { timeout: 60_000 }, async () => {
    allFail(await launch([{ RANK: 1, WORLD_SIZE: 2 }]), /^ERR_(TIMEOUT|LAUNCHER) peer 0/);
  });

  it('refuse different world sizes', { timeout: 60_000 }, async () => {
    allFail(await launch([{ WORLD_SIZE: 2 }, { WORLD_SIZE: 3 }]), /^ERR_/);
  });

  it('refuse two of the same rank', { timeout: 60_000 }, async () => {
    allFail(
      await launch([{ WORLD_SIZE: 3 }, { RANK: 1, WORLD_SIZE: 3 }, { RANK: 1, WORLD_SIZE: 3 }]),
      /^ERR_/,
    );
  });

  it('learn of one that was killed', { timeout: 90_000 }, async () => {
    const ended = await launch([{}, {}, {}].map(() => ({ TEST_QUITS: 2 })));
    assert.equal(ended[2].signal, 'SIGKILL');
    allFail(ended.slice(0, 2), /^ERR_(RANK_LOST|TIMEOUT) peer 2/);
  });
});
