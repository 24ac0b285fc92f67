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

/** `expected`: code and peer of the error of each process, as rank.mjs prints them; alternatives in a list. */
function allFail(ended, expected) {
  for (const [index, { code, output, ms }] of ended.entries()) {
    const allowed = [expected[index]].flat();
    assert.ok(
      allowed.some((one) => output.startsWith(`${one}: `)),
      `process ${index}: ${output}; expected ${allowed.join(' or ')}`,
    );
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
    const ended = await launch([{ WORLD_SIZE: 3 }, { WORLD_SIZE: 3 }]);
    allFail(ended, ['ERR_TIMEOUT peer 2', 'ERR_TIMEOUT peer 2']);
  });

  it('time out when rank 0 cannot be reached', { timeout: 60_000 }, async () => {
    allFail(await launch([{ RANK: 1, WORLD_SIZE: 2 }]), ['ERR_TIMEOUT peer 0']);
  });

  it('refuse different world sizes', { timeout: 60_000 }, async () => {
    const ended = await launch([{ WORLD_SIZE: 2 }, { WORLD_SIZE: 3 }]);
    allFail(ended, ['ERR_RANK_LOST peer 1', 'ERR_LAUNCHER peer 0']);
  });

  it('refuse two of the same rank', { timeout: 60_000 }, async () => {
    const ended = await launch([{ WORLD_SIZE: 3 }, { RANK: 1, WORLD_SIZE: 3 }, { RANK: 1, WORLD_SIZE: 3 }]);
    // Whichever comes second is turned away; the others miss rank 2.
    const twins = ['ERR_TIMEOUT peer 2', 'ERR_LAUNCHER peer 0'];
    allFail(ended, ['ERR_TIMEOUT peer 2', twins, twins]);
    assert.notEqual(ended[1].output.split(':')[0], ended[2].output.split(':')[0]);
  });

  it('turn away one with another token', { timeout: 60_000 }, async () => {
    const ended = await launch([{ NCCL_EXT_TOKEN: 'right' }, { NCCL_EXT_TOKEN: 'wrong' }]);
    allFail(ended, ['ERR_TIMEOUT peer 1', 'ERR_LAUNCHER peer 0']);
  });

  it('refuse other options on every rank', { timeout: 60_000 }, async () => {
    const timeouts = await launch([{}, { NCCL_EXT_TIMEOUT_MS: timeoutMs - 1 }]);
    allFail(timeouts, Array(2).fill('ERR_DISAGREEMENT peer 1'));
  });

  it('refuse more SMs than the GPU has, and a shared GPU that one forbids', { timeout: 60_000 }, async () => {
    const crowded = await launch([{}, {}].map(() => ({ NCCL_EXT_SMS: 1024 })));
    allFail(crowded, Array(2).fill('ERR_INVALID_ARGUMENT peer 0'));
    const forbidden = await launch(
      [0, 1].map((RANK) => ({
        RANK,
        LOCAL_RANK: 0,
        NCCL_MULTI_RANK_GPU_ENABLE: 0,
      })),
    );
    allFail(forbidden, Array(2).fill('ERR_UNSUPPORTED peer 0'));
  });

  it('learn of one that was killed', { timeout: 90_000 }, async () => {
    const ended = await launch([{}, {}, {}].map(() => ({ TEST_QUITS: 2 })));
    assert.equal(ended[2].signal, 'SIGKILL');
    allFail(ended.slice(0, 2), Array(2).fill(['ERR_RANK_LOST peer 2', 'ERR_TIMEOUT peer 2']));
  });
});
