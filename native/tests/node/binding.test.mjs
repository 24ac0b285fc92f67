// SPDX-License-Identifier: Apache-2.0
// The binding has every function of the contract, gives plain data, and throws nothing, whatever it is given.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { addon, take, withRanks } from './addon.mjs';

const codes = {
  invalidArgument: 1,
  invalidState: 2,
  disposed: 3,
  timeout: 5,
  disagreement: 8,
  unsupported: 10,
};

describe('the runtime object', () => {
  it('has the functions of RuntimeSpi and no others', async () => {
    const contract = readFileSync(
      new URL('../../../packages/core/src/contract/runtime.ts', import.meta.url),
      'utf8',
    );
    const body = contract.slice(contract.indexOf('export interface RuntimeSpi'));
    const names = [...body.matchAll(/^ {2}(\w+)\(/gm)].map((match) => match[1]);
    const backend = addon.createBackend('1.2.3');
    assert.deepEqual(Object.keys(backend.runtime).sort(), names.sort());
    assert.match(backend.info.name, /^cuda1[23]$/);
    assert.equal(backend.info.version, '1.2.3');
    await backend.dispose();
  });

  it('throws nothing for arguments of any type', async () => {
    await withRanks(1, async (runtime) => {
      for (const argument of [
        undefined,
        null,
        'text',
        -1,
        1.5,
        Number.NaN,
        2 ** 60,
        {},
        [],
        7n,
        Symbol.iterator,
      ]) {
        for (const [name, call] of Object.entries(runtime)) {
          const result = await call(argument, argument, argument, argument, argument, argument);
          if (name.startsWith('enqueue') || name.startsWith('free')) {
            assert.equal(result, codes.invalidArgument, name);
            assert.equal(runtime.lastError().code, codes.invalidArgument, name);
          }
        }
      }
    });
  });

  it('refuses to run JavaScript in stream order', async () => {
    await withRanks(1, async (runtime, [rank]) => {
      const stream = take(runtime.createStream(rank));
      assert.equal(
        runtime.enqueueHostCall(stream, () => {}),
        codes.unsupported,
      );
      assert.match(runtime.lastError().help, /kernel\.launch/);
      assert.equal(runtime.freeStream(stream), 0);
    });
  });

  it('settles what is pending with ERR_DISPOSED when it is disposed', async () => {
    const backend = addon.createBackend('0.0.0');
    const { runtime } = backend;
    const ranks = take(await runtime.createLocalRanks({ ranks: 2, timeoutMs: 60_000, workers: 0, sms: 0 }));
    const stream = take(runtime.createStream(ranks[0]));
    const event = take(runtime.createEvent(ranks[0]));
    runtime.enqueueBarrier(stream);
    runtime.recordEvent(event, stream);
    const pending = [
      runtime.synchronize(stream),
      runtime.synchronizeEvent(event),
      runtime.exchange(ranks[0], 'alone', new Uint8Array()),
      runtime.registerWindow(ranks[0], take(runtime.allocate(ranks[0], 64, 'symmetric'))),
      runtime.splitRank(ranks[1], 0, 0),
      runtime.disposeRank(ranks[1]),
    ];
    await backend.dispose();
    for (const { ok, error } of await Promise.all(pending))
      assert.deepEqual([ok, error?.code], [false, codes.disposed]);
  });

  it('answers with ERR_DISPOSED after dispose', async () => {
    const backend = addon.createBackend('0.0.0');
    await backend.dispose();
    await backend.dispose();
    const { runtime } = backend;
    const made = await runtime.createLocalRanks({ ranks: 1, timeoutMs: 1, workers: 0 });
    assert.equal(made.error.code, codes.disposed);
    assert.equal(runtime.enqueueBarrier(1), codes.disposed);
    assert.equal(runtime.lastError().code, codes.disposed);
  });
});

describe('ranks of one process', () => {
  it('make collective calls side by side from one thread', async () => {
    await withRanks(8, async (runtime, ranks) => {
      const buffers = ranks.map((rank) => take(runtime.allocate(rank, 4096, 'symmetric')));
      const windows = await Promise.all(ranks.map((rank, i) => runtime.registerWindow(rank, buffers[i])));
      for (const window of windows) assert.ok(window.ok);
      const payloads = await Promise.all(
        ranks.map((rank, i) => runtime.exchange(rank, 'topic', new Uint8Array([i, 2 * i]))),
      );
      for (const all of payloads)
        assert.deepEqual(
          take(all).map((bytes) => bytes[1]),
          [0, 2, 4, 6, 8, 10, 12, 14],
        );
    });
  });

  it('know their GPU, their share of it, and what their communicator can do', async () => {
    await withRanks(2, async (runtime, [rank]) => {
      const { index, name, uuid, multiprocessors, ranks, smBudget } = runtime.deviceOf(rank);
      assert.equal(typeof index, 'number');
      assert.notEqual(name, '');
      assert.match(uuid, /^GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
      assert.equal(smBudget, Math.floor((0.8 * multiprocessors) / ranks));
      assert.equal(runtime.factsOf(rank).ranks, '2');
      assert.match(runtime.factsOf(rank).gin, /^(none|proxy|gdaki|gpi)/);
      assert.deepEqual(runtime.factsOf(12345), {});
      assert.ok(take(runtime.availableMemoryOf(rank)) > 0);
      assert.equal(runtime.availableMemoryOf(12345).error.code, codes.invalidArgument);
    });
    const backend = addon.createBackend('0.0.0');
    const crowded = { ranks: 2, timeoutMs: 5000, workers: 0, sms: 100_000 };
    assert.equal((await backend.runtime.createLocalRanks(crowded)).error.code, codes.invalidArgument);
    for (const sms of [[4], [4, 1.5], [4, -1], [4, 100_000]]) {
      const { error } = await backend.runtime.createLocalRanks({ ...crowded, sms });
      assert.equal(error.code, codes.invalidArgument);
    }
    const uneven = take(await backend.runtime.createLocalRanks({ ...crowded, sms: [5, 2] }));
    assert.deepEqual(
      uneven.map((rank) => backend.runtime.deviceOf(rank).smBudget),
      [5, 2],
    );
    await Promise.all(uneven.map((rank) => backend.runtime.disposeRank(rank)));
    await backend.dispose();
  });

  it('split into worlds of their own', async () => {
    await withRanks(4, async (runtime, ranks) => {
      const splits = await Promise.all(ranks.map((rank, i) => runtime.splitRank(rank, i === 3 ? -1 : 5, -i)));
      const parts = splits.map(take);
      assert.equal(parts[3], undefined);
      assert.deepEqual(
        parts.slice(0, 3).map(({ rank, size }) => [rank, size]),
        [
          [2, 3],
          [1, 3],
          [0, 3],
        ],
      );
      const payloads = await Promise.all(
        parts
          .slice(0, 3)
          .map(({ handle, rank }) => runtime.exchange(handle, 'topic', new Uint8Array([rank]))),
      );
      for (const all of payloads)
        assert.deepEqual(
          take(all).map(([byte]) => byte),
          [0, 1, 2],
        );
      for (const wrong of [-2, 0.5, 'red', undefined]) {
        const refused = await Promise.all(ranks.map((rank, i) => runtime.splitRank(rank, i ? 0 : wrong, 0)));
        for (const { error } of refused) assert.equal(error.code, codes.invalidArgument, String(wrong));
      }
      assert.ok((await runtime.disposeRank(parts[0].handle)).ok);
      assert.ok((await runtime.disposeRank(ranks[1])).ok);
      assert.equal(runtime.createStream(parts[1].handle).error.code, codes.disposed);
    });
  });

  it('report a disagreement on every rank', async () => {
    await withRanks(3, async (runtime, ranks) => {
      const outcomes = await Promise.all(
        ranks.map((rank, i) => runtime.exchange(rank, i === 2 ? 'b' : 'a', new Uint8Array())),
      );
      for (const [rank, outcome] of outcomes.entries()) {
        assert.equal(outcome.error.code, codes.disagreement);
        assert.deepEqual([outcome.error.rank, outcome.error.peer], [rank, 2]);
      }
    });
  });

  it('time out on a missing rank and name it, on streams and in host calls', async () => {
    const late = async (runtime, ranks) => {
      const stream = take(runtime.createStream(ranks[0]));
      assert.equal(runtime.enqueueBarrier(stream), 0);
      const outcome = await runtime.synchronize(stream);
      assert.deepEqual([outcome.error.code, outcome.error.rank, outcome.error.peer], [codes.timeout, 0, 1]);
      assert.equal(runtime.poisonOf(ranks[0]).code, codes.timeout);
      assert.equal((await runtime.exchange(ranks[1], 'alone', new Uint8Array())).error.code, codes.timeout);
    };
    await withRanks(2, late, 100);
  });
});

describe('host memory', () => {
  it('goes to the device and back, byte for byte, from any part of an array', async () => {
    await withRanks(1, async (runtime, [rank]) => {
      const stream = take(runtime.createStream(rank));
      const buffer = take(runtime.allocate(rank, 9_000_000, 'plain'));
      const sent = new Uint8Array(9_000_010).map((_, i) => (i * 7) ^ (i >> 8)).subarray(3, 9_000_003);
      const shared = new Uint8Array(new SharedArrayBuffer(9_000_000));
      assert.equal(runtime.enqueueUpload(stream, buffer, 0, sent), 0);
      assert.equal(runtime.enqueueDownload(stream, shared, buffer, 0), 0);
      assert.ok((await runtime.synchronize(stream)).ok);
      assert.equal(Buffer.compare(sent, shared), 0);
      assert.equal(typeof runtime.bufferAddress(buffer), 'bigint');
      assert.equal(runtime.mapBuffer(buffer).error.code, codes.unsupported);
    });
  });
});
