// SPDX-License-Identifier: Apache-2.0
// Kernels of a user's, in the shapes of EP and M2N, through the public API: bytes, graphs, failures. TEST_RANKS says how many ranks.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { localWorld, param } from '@nccl-ext/core';
import { moduleBytes, threads } from './smoke/common.mjs';
import { makeEp } from './smoke/ep-job.mjs';
import { makeM2n } from './smoke/m2n-job.mjs';

const size = Number(process.env.TEST_RANKS ?? 2);
const last = size - 1;
const epochs = 20;
const makers = { ep: makeEp, m2n: makeM2n };

const delay = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const outcomesOf = (parts) =>
  Promise.all(parts.map(({ stream }) => stream.synchronize().catch((error) => error)));

/** A world of its own for `body`: what one test breaks no other sees. */
async function withWorld(body, timeoutMs = 20_000) {
  const world = await localWorld({ ranks: size, backend: 'cuda', timeoutMs });
  try {
    await body(world.ranks);
  } finally {
    await world.dispose();
  }
}

/** Every rank's part of `ep` or `m2n`. */
function partsOf(comms, name, options, kind = 'cubin') {
  const image = moduleBytes(`${name}_smoke.${kind}`);
  return Promise.all(comms.map(async (comm) => makers[name](comm, await comm.loadModule(image), options)));
}

/** One epoch on every rank, each byte checked. */
async function runEpoch(parts, epoch, enqueue = (part) => part.enqueue()) {
  for (const part of parts) part.prepare(epoch);
  for (const part of parts) enqueue(part);
  await Promise.all(parts.map(({ stream }) => stream.synchronize()));
  for (const part of parts) part.check(epoch);
}

for (const name of ['ep', 'm2n']) {
  describe(`${name} on ${size} ranks`, () => {
    for (const kind of ['cubin', 'ptx'])
      it(`moves every byte, ${epochs} times, from ${kind}`, { timeout: 120_000 }, () =>
        withWorld(async (comms) => {
          const parts = await partsOf(comms, name, {}, kind);
          for (let epoch = 1; epoch <= epochs; epoch++) await runEpoch(parts, epoch);
        }),
      );

    it(`does so as a graph, between launches outside`, { timeout: 120_000 }, () =>
      withWorld(async (comms) => {
        const parts = await partsOf(comms, name);
        const graphs = new Map(parts.map((part) => [part, part.stream.capture(() => part.enqueue())]));
        for (let epoch = 1; epoch <= epochs; epoch++)
          await runEpoch(parts, epoch, (part) => {
            if (epoch % 4 === 0) part.enqueue();
            else part.stream.launch(graphs.get(part));
          });
        for (const graph of graphs.values()) await graph.dispose();
      }),
    );

    it('runs many epochs that the host waits for nowhere in between', { timeout: 120_000 }, () =>
      withWorld(async (comms) => {
        const parts = await partsOf(comms, name);
        for (const part of parts) part.prepare(3);
        for (const part of parts) part.enqueue();
        for (let round = 0; round < 100; round++) for (const part of parts) part.launch();
        for (const part of parts) part.enqueue();
        await Promise.all(parts.map(({ stream }) => stream.synchronize()));
        for (const part of parts) part.check(3);
      }),
    );
  });
}

describe(`a rank of ${size} that never comes`, () => {
  const timeoutMs = 1500;

  async function timed(parts, missing) {
    const present = parts.filter(({ comm }) => comm.rank !== missing);
    const begun = performance.now();
    for (const part of present) part.enqueue();
    const outcomes = await outcomesOf(present);
    assert.ok(performance.now() - begun < timeoutMs + 3000, `${performance.now() - begun} ms`);
    return present.map((part, i) => ({ part, outcome: outcomes[i] }));
  }

  function assertMissing({ part, outcome }, missing) {
    assert.equal(outcome?.code, 'ERR_TIMEOUT', `rank ${part.comm.rank}: ${outcome}`);
    assert.deepEqual([outcome.rank, outcome.peer, outcome.op], [part.comm.rank, missing, 'kernel']);
  }

  it('is named by all others of an EP world in time; their next kernels do not wait, and a new world works', {
    timeout: 60_000,
  }, async () => {
    await withWorld(async (comms) => {
      const parts = await partsOf(comms, 'ep');
      for (const row of await timed(parts, last)) {
        assertMissing(row, last);
        assert.throws(() => row.part.enqueue(), { code: 'ERR_POISONED' });
      }
    }, timeoutMs);
    await withWorld(async (comms) => runEpoch(await partsOf(comms, 'ep'), 1));
  });

  it('is named by every destination when it is a source of M2N', { timeout: 60_000 }, async () => {
    await withWorld(async (comms) => {
      const parts = await partsOf(comms, 'm2n');
      for (const row of await timed(parts, 0)) {
        if (row.part.isSource) assert.equal(row.outcome, undefined);
        else assertMissing(row, 0);
      }
    }, timeoutMs);
    await withWorld(async (comms) => runEpoch(await partsOf(comms, 'm2n'), 1));
  });

  it('and was aborted ends the others at once', { timeout: 60_000 }, () =>
    withWorld(async (comms) => {
      const parts = await partsOf(comms, 'ep');
      const waiting = parts.slice(0, last);
      for (const part of waiting) part.enqueue();
      await delay(100);
      const begun = performance.now();
      comms[last].abort('test');
      for (const outcome of await outcomesOf(waiting))
        assert.equal(outcome?.code, 'ERR_RANK_LOST', String(outcome));
      assert.ok(performance.now() - begun < 3000);
    }, 30_000),
  );

  it('and is only late is waited for', { timeout: 60_000 }, () =>
    withWorld(async (comms) => {
      const parts = await partsOf(comms, 'm2n');
      for (const part of parts) part.prepare(2);
      for (const part of parts.slice(1)) part.enqueue();
      await delay(500);
      parts[0].enqueue();
      await Promise.all(parts.map(({ stream }) => stream.synchronize()));
      for (const part of parts) part.check(2);
    }),
  );
});

describe("a kernel's own error", () => {
  it('of an expert without room reaches every rank, and the world goes on', { timeout: 60_000 }, () =>
    withWorld(async (comms) => {
      const capacity = size * 64 - 1;
      const parts = await partsOf(comms, 'ep', { capacity });
      await runEpoch(parts, 4);
      for (const part of parts) part.prepare(5);
      for (const part of parts) part.enqueue();
      for (const [rank, outcome] of (await outcomesOf(parts)).entries()) {
        assert.equal(outcome?.code, 'ERR_OUT_OF_BOUNDS', String(outcome));
        assert.deepEqual([outcome.rank, outcome.peer], [rank, 0]);
        assert.deepEqual([outcome.expected, outcome.seen], [capacity, capacity + 1]);
      }
      await runEpoch(parts, 6);
    }),
  );

  it('of a move out of bounds names its destination on its source alone', { timeout: 60_000 }, () =>
    withWorld(async (comms) => {
      const parts = await partsOf(comms, 'm2n', { overruns: true });
      for (const part of parts) part.prepare(1);
      for (const part of parts) part.enqueue();
      const [first, ...others] = await outcomesOf(parts);
      assert.equal(first?.code, 'ERR_INVALID_ARGUMENT', String(first));
      assert.deepEqual([first.peer, first.seen - first.expected], [last, 16]);
      assert.deepEqual(others, Array(last).fill(undefined));
    }),
  );

  it('is ERR_KERNEL with its two numbers, once, on the stream that launched it or its graph', () =>
    withWorld(async ([comm]) => {
      const module = await comm.loadModule(moduleBytes('m2n_smoke.cubin'));
      const complain = module.kernel('complain');
      const [stream, other] = [comm.createStream(), comm.createStream()];
      const enqueue = () =>
        complain.launch(stream, {
          grid: 1,
          block: 32,
          parameters: [param.u64(1), param.u64(7), param.u64(8), param.guard],
        });
      const isReported = (error) => {
        assert.deepEqual(
          [error.code, error.rank, error.peer, error.op, error.expected, error.seen],
          ['ERR_KERNEL', 0, 1, 'kernel', 7, 8],
        );
        return true;
      };
      enqueue();
      await assert.rejects(stream.synchronize(), isReported);
      await stream.synchronize();
      const graph = stream.capture(enqueue);
      other.launch(graph);
      await assert.rejects(other.synchronize(), isReported);
      await stream.synchronize();
      await graph.dispose();
    }));
});

describe('modules and launches', () => {
  it('that do not fit are refused by name, and what fits runs afterwards', { timeout: 60_000 }, () =>
    withWorld(async (comms) => {
      const [comm] = comms;
      const cubin = moduleBytes('ep_smoke.cubin');
      const ptx = Buffer.from(moduleBytes('ep_smoke.ptx')).toString('latin1');
      const text = (string) => Buffer.from(string, 'latin1');
      for (const [image, pattern] of [
        [moduleBytes('m2n_smoke.sm_80.cubin'), /no code for GPU/],
        [cubin.subarray(0, cubin.length >> 1), /cut off/],
        [text(ptx.replace(/\.version [\d.]+/, '.version 99.9')), /./],
        [text(ptx.replace('.visible .entry', '.visible .nonsense')), /ptxas|parsing|PTX/],
        [text('no module'), /neither a cubin nor PTX/],
      ])
        await assert.rejects(comm.loadModule(image), (error) => {
          assert.equal(error.code, 'ERR_MODULE');
          assert.match(error.message, pattern);
          process.stdout.write(`# ${error.message.split('\n')[0].slice(0, 300)}\n`);
          return true;
        });
      const module = await comm.loadModule(cubin);
      const kernel = module.kernel('ep_dispatch');
      assert.throws(() => module.kernel('nobody'), {
        code: 'ERR_INVALID_ARGUMENT',
        message: /it has ep_dispatch/,
      });
      const stream = comm.createStream();
      const refuses = (change, code, pattern) =>
        assert.throws(
          () => kernel.launch(stream, { grid: 1, block: threads, sharedBytes: 64 << 10, ...change }),
          (error) => {
            assert.equal(error.code, code, error.message);
            assert.match(error.message, pattern);
            return true;
          },
        );
      const pointer = param.u64(0);
      const fitting = [pointer, pointer, param.guard];
      refuses({ parameters: [pointer] }, 'ERR_MODULE', /takes 3 parameters; it was given 1/);
      refuses(
        { parameters: [pointer, param.u32(0), param.guard, param.u8(1)] },
        'ERR_MODULE',
        /takes 3 parameters/,
      );
      refuses(
        { parameters: [pointer, pointer, param.u32(0)] },
        'ERR_MODULE',
        /reads 32 bytes of parameter 2/,
      );
      refuses(
        { parameters: [param.u32(0), param.u32(0), param.guard] },
        'ERR_MODULE',
        /reads 8 bytes of parameter 0/,
      );
      refuses({ parameters: fitting, block: 512 }, 'ERR_MODULE', /at most 256 threads/);
      refuses({ parameters: fitting, sharedBytes: 1 << 20 }, 'ERR_MODULE', /dynamic shared memory/);
      refuses({ parameters: fitting, grid: [1, 65_536] }, 'ERR_INVALID_ARGUMENT', /grid/);
      const foreign = comms[last].createStream();
      assert.throws(() => kernel.launch(foreign, { grid: 1, block: 32 }), { code: 'ERR_FOREIGN_OBJECT' });
      await stream.synchronize();
      await runEpoch(await partsOf(comms, 'ep'), 1);
    }),
  );

  it('stay while a launch or a graph uses them', { timeout: 60_000 }, () =>
    withWorld(async (comms) => {
      const parts = await partsOf(comms, 'm2n');
      for (const part of parts) part.prepare(1);
      parts[0].enqueue();
      const { module } = parts[0].kernel;
      await assert.rejects(module.dispose(), { code: 'ERR_BUSY' });
      for (const part of parts.slice(1)) part.enqueue();
      await Promise.all(parts.map(({ stream }) => stream.synchronize()));
      const graph = parts[0].stream.capture(() => parts[0].enqueue());
      await assert.rejects(module.dispose(), { code: 'ERR_BUSY' });
      await graph.dispose();
      await module.dispose();
      assert.throws(() => module.kernel('m2n_step'), { code: 'ERR_DISPOSED' });
      for (const part of parts.slice(1)) part.check(1);
    }),
  );

  it('know where windows are', () =>
    withWorld(async (comms) => {
      const windows = await Promise.all(comms.map((comm) => comm.registerWindow(comm.allocate(4096))));
      for (const window of windows) {
        assert.equal(window.peers.addresses.length, size);
        assert.ok(window.peers.addresses.every((address) => address !== 0n));
        assert.equal(window.peers.addresses[window.communicator.rank], window.buffer.address);
        assert.notEqual(window.peers.table, 0n);
      }
    }));
});
