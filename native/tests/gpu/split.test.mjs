// SPDX-License-Identifier: Apache-2.0
// Worlds on GPUs beyond their barriers: who shares a GPU and how much of it, communicators that are split, and what becomes of
// work behind a failure. TEST_RANKS says how many ranks; at least 2.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { localWorld } from '@nccl-ext/core';

const ranks = Number(process.env.TEST_RANKS ?? 2);
const last = ranks - 1;

async function withWorld(body, { timeoutMs = 20_000, ...options } = {}) {
  const world = await localWorld({ ranks, backend: 'cuda', timeoutMs, ...options });
  try {
    await body(world.ranks, world);
  } finally {
    await world.dispose();
  }
}

const onAll = (comms, body) => Promise.all(comms.map(body));

async function barrierOf(comms) {
  const streams = comms.map((comm) => comm.createStream());
  for (let round = 0; round < 10; round++) for (const stream of streams) stream.barrier();
  await onAll(streams, (stream) => stream.synchronize());
  for (const stream of streams) await stream.dispose();
}

describe(`the GPU of each of ${ranks} ranks`, () => {
  it('is described, and shared out by how many ranks are on it', () =>
    withWorld(async (comms) => {
      const onGpu = new Map();
      for (const { device } of comms) onGpu.set(device.uuid, (onGpu.get(device.uuid) ?? 0) + 1);
      for (const { device, facts } of comms) {
        assert.match(device.uuid, /^GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
        assert.ok(device.multiprocessors > 0);
        assert.equal(device.ranks, onGpu.get(device.uuid));
        assert.equal(device.smBudget, Math.max(1, Math.floor((0.8 * device.multiprocessors) / device.ranks)));
        assert.equal(facts.ranks, String(ranks));
        assert.equal(facts.lsaTeams, '1');
        assert.equal(facts.windows, 'yes');
      }
    }));

  it('holds the SMs that were asked for, or the world is refused', async () => {
    let most = 0;
    await withWorld(
      async ([{ device }]) => {
        assert.equal(device.smBudget, 3);
        most = Math.floor(device.multiprocessors / device.ranks);
      },
      { sms: 3 },
    );
    const own = Array.from({ length: ranks }, (_, rank) => rank + 1);
    await withWorld(
      async (comms) => {
        assert.deepEqual(
          comms.map(({ device }) => device.smBudget),
          own,
        );
        await barrierOf(comms);
      },
      { sms: own },
    );
    const crowded = localWorld({ ranks, backend: 'cuda', timeoutMs: 20_000, sms: most + 1 });
    await assert.rejects(crowded, { code: 'ERR_INVALID_ARGUMENT' });
    await withWorld(barrierOf);
  });
});

describe('split', () => {
  it('makes two worlds that know nothing of each other', () =>
    withWorld(async (comms) => {
      const parts = await onAll(comms, (comm) => comm.split({ color: comm.rank % 2 }));
      for (const [rank, part] of parts.entries()) {
        assert.equal(part.rank, Math.floor(rank / 2));
        assert.equal(part.size, Math.ceil((ranks - (rank % 2)) / 2));
        assert.equal(part.device.uuid, comms[rank].device.uuid);
      }
      // One of them makes barriers and windows while the other one is idle.
      const even = parts.filter((_, rank) => rank % 2 === 0);
      await barrierOf(even);
      await onAll(even, async (part) => {
        const window = await part.registerWindow(part.allocate(4096));
        await part.agree('even', { size: part.size });
        await window.dispose();
      });
      await barrierOf(parts.filter((_, rank) => rank % 2 === 1));
      await barrierOf(comms);
    }));

  it('orders by key, leaves out who wants to be, and splits again', () =>
    withWorld(async (comms) => {
      const reversed = await onAll(comms, (comm) => comm.split({ color: 3, key: -comm.rank }));
      for (const [rank, part] of reversed.entries()) assert.equal(part.rank, last - rank);
      await barrierOf(reversed);
      const nested = await onAll(reversed, (part) => part.split({ color: part.rank === 0 ? -1 : 0 }));
      assert.equal(nested[last], undefined);
      const rest = nested.slice(0, last);
      for (const [rank, part] of rest.entries()) assert.equal(part.rank, last - 1 - rank);
      await barrierOf(rest);
      // Parents take their children along, in any order of ranks.
      for (const comm of [...comms].reverse()) await comm.dispose();
      for (const part of [...reversed, ...rest]) assert.ok(part.disposed);
    }));

  it('passes a failure down and not up', () =>
    withWorld(
      async (comms) => {
        const parts = await onAll(comms, (comm) => comm.split({ color: 0 }));
        const stream = parts[0].createStream();
        stream.barrier();
        await assert.rejects(stream.synchronize(), { code: 'ERR_TIMEOUT', peer: 1 });
        assert.equal(comms[0].failure, undefined);
        await barrierOf(comms);
        const others = await onAll(comms, (comm) => comm.split({ color: 0 }));
        await barrierOf(others);
        const waiting = others[0].createStream();
        waiting.barrier();
        comms[last].abort('test');
        await assert.rejects(waiting.synchronize(), { code: 'ERR_RANK_LOST', peer: last });
        assert.equal(others[last].failure?.code, 'ERR_ABORTED');
      },
      { timeoutMs: 1500 },
    ));

  it('many times leaves nothing behind', { timeout: 120_000 }, () =>
    withWorld(async (comms, world) => {
      for (let round = 0; round < 10; round++) {
        const parts = await onAll(comms, (comm) => comm.split({ color: 0 }));
        await barrierOf(parts);
        await onAll(parts, (part) => part.dispose());
      }
      assert.equal(world.size, ranks);
      await barrierOf(comms);
    }),
  );
});

describe('work behind a failure', () => {
  it('is skipped on every stream of the rank, and says so', () =>
    withWorld(
      async ([comm]) => {
        const [first, second, third] = [comm.createStream(), comm.createStream(), comm.createStream()];
        const bytes = 3_000_001;
        const [mark, other] = [comm.allocate(bytes, 'plain'), comm.allocate(bytes, 'plain')];
        const event = comm.createEvent();
        first.fill(mark, 5);
        first.fill(other, 6);
        await first.synchronize();
        const down = new Uint8Array(bytes).fill(7);
        first.barrier();
        first.record(event);
        first.download(down, mark);
        second.wait(event);
        second.fill(mark, 1);
        second.copy({ buffer: mark, byteOffset: 3 }, { buffer: other }, 100_000);
        second.upload(mark, new Uint8Array(bytes).fill(8));
        second.barrier();
        await assert.rejects(first.synchronize(), { code: 'ERR_TIMEOUT', peer: 1 });
        await assert.rejects(second.synchronize(), { code: 'ERR_POISONED', op: 'fill' });
        await third.synchronize();
        assert.ok(event.reached);
        assert.ok(down.every((byte) => byte === 7));
      },
      { timeoutMs: 1000 },
    ));

  it('of a healthy rank moves every byte, however it is aligned', () =>
    withWorld(async ([comm]) => {
      const stream = comm.createStream();
      const size = 70_000;
      const [a, b] = [comm.allocate(size, 'plain'), comm.allocate(size, 'plain')];
      const sent = new Uint8Array(size).map((_, i) => Math.imul(i + 1, 2654435761) >>> 24);
      const back = new Uint8Array(size);
      for (const [to, from, bytes] of [
        [0, 0, size],
        [1, 1, 50_000],
        [3, 8, 65_000],
        [16, 5, 17],
        [15, 15, 1],
        [7, 0, 16],
        [9, 9, 31],
      ]) {
        const expected = new Uint8Array(size).fill(0xee);
        expected.set(sent.subarray(from, from + bytes), to);
        stream.fill(b, 0xee);
        stream.upload(a, sent);
        stream.copy({ buffer: b, byteOffset: to }, { buffer: a, byteOffset: from }, bytes);
        stream.download(back, b);
        await stream.synchronize();
        assert.equal(Buffer.compare(back, expected), 0, `${bytes} bytes from ${from} to ${to}`);
        // Fills and uploads of the same range.
        expected.fill(0xee).fill(0x5a, to, to + bytes);
        stream.fill(b, 0xee);
        stream.fill(b, 0x5a, to, bytes);
        stream.download(back, b);
        await stream.synchronize();
        assert.equal(Buffer.compare(back, expected), 0, `a fill of ${bytes} bytes at ${to}`);
        expected.fill(0xee).set(sent.subarray(from, from + bytes), to);
        stream.fill(b, 0xee);
        stream.upload(b, sent.subarray(from, from + bytes), to);
        stream.download(back, b);
        await stream.synchronize();
        assert.equal(Buffer.compare(back, expected), 0, `an upload of ${bytes} bytes to ${to}`);
      }
    }));
});
