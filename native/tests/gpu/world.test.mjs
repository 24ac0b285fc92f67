// SPDX-License-Identifier: Apache-2.0
// The public API on GPUs: the ranks of one process, on as many GPUs as there are. TEST_RANKS says how many ranks.
// scripts/gpu-bundle.mjs carries it to a machine with a GPU.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { localWorld } from '@nccl-ext/core';

const ranks = Number(process.env.TEST_RANKS ?? 2);
const last = ranks - 1;

/** A world of its own for `body`: what one test breaks no other sees. */
async function withWorld(body, timeoutMs = 20_000) {
  const world = await localWorld({ ranks, backend: 'cuda', timeoutMs });
  try {
    await body(world.ranks, world);
  } finally {
    await world.dispose();
  }
}

const onAll = (comms, body) => Promise.all(comms.map(body));
const outcomes = async (comms, body) => Promise.allSettled(comms.map(async (comm) => body(comm)));
const reasonOf = (outcome) => outcome.reason ?? assert.fail('fulfilled, but should have been rejected');
const pattern = (bytes, seed) => new Uint8Array(bytes).map((_, i) => Math.imul(i + seed, 2654435761) >>> 24);
const delay = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

function refused(call, code) {
  assert.throws(call, (error) => error.code === code || assert.fail(`${error.code}: ${error.message}`));
}

describe(`${ranks} ranks agree`, () => {
  it('on equal fields, and exchange bytes by rank', () =>
    withWorld(async (comms) => {
      await onAll(comms, (comm) => comm.agree('step', { step: 7, name: 'a' }));
      const all = await onAll(comms, (comm) => comm.exchange('who', new Uint8Array([comm.rank, 99])));
      for (const payloads of all)
        assert.deepEqual(
          payloads.map(([rank]) => rank),
          comms.map((comm) => comm.rank),
        );
    }));

  it('or name the rank and field that differ, and go on', () =>
    withWorld(async (comms) => {
      const ended = await outcomes(comms, (comm) => comm.agree('step', { step: comm.rank === last ? 8 : 7 }));
      for (const { code, field, peer } of ended.map(reasonOf)) {
        assert.equal(code, 'ERR_DISAGREEMENT');
        assert.equal(field, 'step');
        if (ranks > 2) assert.equal(peer, last);
      }
      await onAll(comms, (comm) => comm.agree('step', { step: 9 }));
    }));
});

describe('windows', () => {
  it('are made of symmetric memory of any size, on all ranks together', () =>
    withWorld(async (comms) => {
      const windows = await onAll(comms, async (comm) => {
        const window = await comm.registerWindow(comm.allocate(1 + comm.rank * 3_000_000));
        assert.equal(window.bytes, 1 + comm.rank * 3_000_000);
        await assert.rejects(window.buffer.communicator.registerWindow({}), { code: 'ERR_INVALID_ARGUMENT' });
        return window;
      });
      for (const window of windows) await window.dispose();
    }));

  it('of plain memory are refused on every rank, at once, and the world goes on', () =>
    withWorld(async (comms) => {
      const buffers = comms.map((comm) => comm.allocate(4096, comm.rank === last ? 'plain' : 'symmetric'));
      const ended = await outcomes(comms, (comm) => comm.registerWindow(buffers[comm.rank]));
      for (const [rank, { code, peer }] of ended.map(reasonOf).entries()) {
        assert.equal(code, 'ERR_INVALID_ARGUMENT');
        if (rank !== last) assert.equal(peer, last);
      }
      await onAll(comms, async (comm) => comm.registerWindow(comm.allocate(4096)));
    }));
});

describe('memory', () => {
  it('takes every byte to the device, across it, and back', () =>
    withWorld(async (comms) => {
      const bytes = 20_000_003;
      await onAll(comms, async (comm) => {
        const sent = pattern(bytes, comm.rank);
        const back = new Uint8Array(bytes);
        const [first, second] = [comm.allocate(bytes), comm.allocate(bytes, 'plain')];
        const stream = comm.createStream();
        stream.fill(second, 0xab);
        stream.upload(first, sent);
        stream.copy({ buffer: second, byteOffset: 5 }, { buffer: first, byteOffset: 3 }, bytes - 5);
        stream.download(back, second);
        await stream.synchronize();
        assert.deepEqual([...back.subarray(0, 5)], [0xab, 0xab, 0xab, 0xab, 0xab]);
        assert.equal(Buffer.compare(back.subarray(5), sent.subarray(3, bytes - 2)), 0);
        for (const buffer of [first, second]) await buffer.dispose();
      });
    }));

  it('that the GPU does not have is an error with the sizes, and later calls work', () =>
    withWorld(async ([comm]) => {
      for (const kind of ['plain', 'symmetric']) {
        refused(() => comm.allocate(2 ** 45, kind), 'ERR_OUT_OF_MEMORY');
        await comm.allocate(1 << 20, kind).dispose();
      }
    }));

  it('refuses ranges and handles that are wrong', () =>
    withWorld(async (comms) => {
      const [comm] = comms;
      const [stream, buffer, foreign] = [comm.createStream(), comm.allocate(100), comms[last].allocate(100)];
      refused(() => stream.fill(buffer, 0, 0, 101), 'ERR_OUT_OF_BOUNDS');
      refused(() => stream.upload(buffer, new Uint8Array(101)), 'ERR_OUT_OF_BOUNDS');
      refused(() => stream.fill(foreign, 0), 'ERR_FOREIGN_OBJECT');
      refused(() => buffer.view('u8'), 'ERR_UNSUPPORTED');
      await buffer.dispose();
      refused(() => stream.fill(buffer, 0), 'ERR_DISPOSED');
      await stream.synchronize();
    }));
});

describe('barriers', () => {
  it('hold every rank until the last has come', () =>
    withWorld(async (comms) => {
      const streams = comms.map((comm) => comm.createStream());
      const events = comms.map((comm) => comm.createEvent());
      const enter = (rank) => {
        streams[rank].barrier();
        streams[rank].record(events[rank]);
      };
      for (let rank = 0; rank < last; rank++) enter(rank);
      await delay(200);
      for (let rank = 0; rank < last; rank++) assert.equal(events[rank].reached, false);
      enter(last);
      await onAll(streams, (stream) => stream.synchronize());
      for (const event of events) assert.ok(event.reached);
    }));

  it('work on any stream of a rank, many times', { timeout: 60_000 }, () =>
    withWorld(async (comms, world) => {
      const streams = comms.map((comm) => [comm.createStream(), comm.createStream()]);
      const begun = performance.now();
      const rounds = 40;
      const each = 100;
      for (let round = 0; round < rounds; round++) {
        for (let i = 0; i < each; i++) for (const pair of streams) pair[(round + i) % 2].barrier();
        await onAll(streams.flat(), (stream) => stream.synchronize());
      }
      const us = ((performance.now() - begun) * 1000) / (rounds * each);
      process.stdout.write(`# ${world.size} ranks: ${us.toFixed(1)} us per barrier, enqueueing included\n`);
    }),
  );

  it('in a graph are ordered with those outside, and counted by none', { timeout: 60_000 }, () =>
    withWorld(async (comms, world) => {
      const parts = comms.map((comm) => ({
        stream: comm.createStream(),
        source: comm.allocate(4096),
        target: comm.allocate(4096),
        start: comm.createEvent(),
        end: comm.createEvent(),
      }));
      const graphs = parts.map(({ stream, source, target }, rank) => {
        stream.upload(source, pattern(4096, rank));
        return stream.capture(() => {
          stream.barrier();
          stream.copy({ buffer: target }, { buffer: source }, 4096);
          stream.barrier();
        });
      });
      const launches = 100;
      for (const [rank, { stream, start, end }] of parts.entries()) {
        stream.barrier();
        stream.record(start);
        for (let i = 0; i < launches; i++) stream.launch(graphs[rank]);
        stream.record(end);
        stream.barrier();
      }
      const backs = await onAll(parts, async ({ stream, target }) => {
        const back = new Uint8Array(4096);
        stream.download(back, target);
        await stream.synchronize();
        return back;
      });
      for (const [rank, back] of backs.entries()) assert.deepEqual(back, pattern(4096, rank));
      const us = (parts[0].end.elapsedMs(parts[0].start) * 1000) / launches;
      process.stdout.write(
        `# ${world.size} ranks: ${us.toFixed(1)} us per graph of two barriers and a copy\n`,
      );
      for (const graph of graphs) await graph.dispose();
    }),
  );

  it('fill a stream with 256 operations and no more', () =>
    withWorld(async (comms) => {
      const streams = comms.map((comm) => comm.createStream());
      for (let i = 0; i < 256; i++) streams[0].barrier();
      assert.equal(streams[0].queued, 256);
      refused(() => streams[0].barrier(), 'ERR_QUEUE_FULL');
      for (const stream of streams.slice(1)) for (let i = 0; i < 256; i++) stream.barrier();
      await onAll(streams, (stream) => stream.synchronize());
      assert.equal(streams[0].queued, 0);
    }));
});

describe('events', () => {
  it('order the streams of different ranks and measure time', () =>
    withWorld(async (comms) => {
      const bytes = 64 << 20;
      const [first, second] = [comms[0], comms[last]];
      const [a, b] = [first.createStream(), second.createStream()];
      const [buffer, own] = [first.allocate(bytes), second.allocate(16)];
      const [start, filled, end] = [first.createEvent(), first.createEvent(), second.createEvent()];
      assert.ok(start.reached);
      a.record(start);
      for (let i = 0; i < 20; i++) a.fill(buffer, i);
      a.record(filled);
      b.wait(filled);
      b.fill(own, 1);
      b.record(end);
      await end.synchronize();
      assert.ok(filled.reached);
      const ms = filled.elapsedMs(start);
      assert.ok(ms > 0 && ms < 1000, `${ms} ms`);
    }));
});

describe('a rank that never comes', () => {
  const missing = async (comms, call) => {
    const begun = performance.now();
    const ended = await outcomes(comms.slice(0, last), call);
    for (const [rank, { code, peer, message }] of ended.map(reasonOf).entries()) {
      assert.equal(code, 'ERR_TIMEOUT', message);
      assert.equal(peer, last, message);
      assert.equal(comms[rank].failure?.code, 'ERR_TIMEOUT');
    }
    assert.ok(performance.now() - begun < 5000);
  };

  it('times out the others on their streams, by name, and the process goes on to a new world', async () => {
    for (let round = 0; round < 2; round++) {
      await withWorld(async (comms) => {
        await missing(comms, async (comm) => {
          const stream = comm.createStream();
          stream.barrier();
          await stream.synchronize();
        });
        refused(() => comms[0].createStream().barrier(), 'ERR_POISONED');
      }, 500);
      await withWorld((comms) => onAll(comms, (comm) => comm.agree('again', { round })));
    }
  });

  it('times out the others in host calls, by name', async () => {
    await withWorld((comms) => missing(comms, (comm) => comm.agree('alone', {})), 500);
    await withWorld((comms) => missing(comms, (comm) => comm.registerWindow(comm.allocate(8))), 500);
    await withWorld((comms) => onAll(comms, (comm) => comm.agree('again', {})));
  });

  it('because it was aborted ends the waits of the others at once', async () => {
    await withWorld(async (comms) => {
      const streams = comms.map((comm) => comm.createStream());
      for (const stream of streams.slice(0, last)) stream.barrier();
      const begun = performance.now();
      setTimeout(() => comms[last].abort('test'), 100);
      const ended = await outcomes(streams.slice(0, last), (stream) => stream.synchronize());
      assert.ok(performance.now() - begun < 5000);
      for (const { code, peer } of ended.map(reasonOf))
        assert.deepEqual([code, peer], ['ERR_RANK_LOST', last]);
      await assert.rejects(comms[last].agree('after', {}), { code: 'ERR_POISONED' });
    });
    await withWorld((comms) => onAll(comms, (comm) => comm.agree('again', {})));
  });
});
