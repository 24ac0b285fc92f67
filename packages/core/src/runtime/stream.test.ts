// SPDX-License-Identifier: Apache-2.0
// What users do with streams, events, graphs, buffers and windows, on the embedded backend.

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { localWorld } from '../world/local-world.js';
import type { World } from '../world/world.js';

let world: World;
beforeEach(async () => {
  world = await localWorld({ ranks: 2, backend: 'embedded', timeoutMs: 500 });
});
afterEach(() => world.dispose());

describe('Stream', () => {
  it('runs copies, fills, uploads and downloads in order', async () => {
    const [comm] = world.ranks;
    const [a, b] = [comm!.allocate(64), comm!.allocate(64)];
    const stream = comm!.createStream();
    const back = new Uint8Array(8);
    stream.fill(a, 1);
    stream.upload(a, Uint8Array.of(9, 8, 7), 2);
    stream.copy({ buffer: b, byteOffset: 8 }, { buffer: a }, 8);
    stream.download(back, b, 8);
    await stream.synchronize();
    expect([...back]).toEqual([1, 1, 9, 8, 7, 1, 1, 1]);
    expect(stream.queued).toBe(0);
  });

  it('orders work of two ranks by an event, and measures time between events', async () => {
    const [first, second] = world.ranks;
    const buffer = first!.allocate(16);
    const [start, done] = [first!.createEvent(), first!.createEvent()];
    const [writer, reader] = [first!.createStream(), second!.createStream()];
    writer.record(start);
    writer.fill(buffer, 5);
    writer.record(done);
    reader.wait(done);
    await reader.synchronize();
    expect(buffer.view('u8')[0]).toBe(5);
    expect(done.reached).toBe(true);
    await done.synchronize();
    expect(done.elapsedMs(start)).toBeGreaterThanOrEqual(0);
  });

  it('takes 256 operations and refuses one more without enqueueing it; then goes on', async () => {
    const [comm] = world.ranks;
    const buffer = comm!.allocate(16);
    const stream = comm!.createStream();
    world.faults.stop(0);
    for (let i = 0; i < 256; i++) stream.fill(buffer, i & 255);
    expect(stream.queued).toBe(256);
    expect(() => stream.fill(buffer, 77)).toThrow(expect.objectContaining({ code: 'ERR_QUEUE_FULL' }));
    world.faults.resume(0);
    await stream.synchronize();
    expect(buffer.view('u8')[0]).toBe(255);
  });

  it('calls the host in order, and rejects with the cause of what it threw', async () => {
    const [comm] = world.ranks;
    const buffer = comm!.allocate(4);
    const stream = comm!.createStream();
    stream.fill(buffer, 1);
    stream.callHost(async () => {
      await null;
      buffer.view('u8')[0]! += 1;
    });
    stream.fill(buffer, 5, 1, 1);
    await stream.synchronize();
    expect([...buffer.view('u8')]).toEqual([2, 5, 1, 1]);
    const cause = new RangeError('expert 7');
    stream.callHost(() => {
      throw cause;
    });
    await expect(stream.synchronize()).rejects.toMatchObject({
      code: 'ERR_HOST_CALL',
      op: 'callHost',
      cause,
    });
    await stream.synchronize();
    expect(() => stream.callHost(7 as never)).toThrow(expect.objectContaining({ field: 'run' }));
  });

  it('records a graph and launches it many times; a throw while recording leaves the stream usable', async () => {
    const [comm] = world.ranks;
    const [counter, next] = [comm!.allocate(8), comm!.allocate(8)];
    const stream = comm!.createStream();
    expect(() =>
      stream.capture(() => {
        stream.fill(counter, 9);
        throw new Error('changed my mind');
      }),
    ).toThrow('changed my mind');
    const graph = stream.capture(() => {
      stream.copy({ buffer: next }, { buffer: counter }, 8);
      stream.fill(counter, 3);
    });
    stream.fill(counter, 1);
    for (let i = 0; i < 300; i++) {
      if (stream.queued > 200) await stream.synchronize();
      stream.launch(graph);
    }
    await stream.synchronize();
    expect([counter.view('u8')[0], next.view('u8')[0]]).toEqual([3, 3]);
    await graph.dispose();
  });

  it('names the missing rank when a barrier times out; the communicator is poisoned, another world is not', async () => {
    const [comm] = world.ranks;
    const other = await localWorld({ ranks: 1, backend: 'embedded' });
    const stream = comm!.createStream();
    stream.barrier();
    await expect(stream.synchronize()).rejects.toMatchObject({
      code: 'ERR_TIMEOUT',
      rank: 0,
      peer: 1,
      op: 'barrier',
    });
    expect(comm!.failure).toMatchObject({ code: 'ERR_TIMEOUT' });
    expect(() => stream.barrier()).toThrow(expect.objectContaining({ code: 'ERR_POISONED' }));
    await expect(other.run((single) => single.agree('alive', {}))).resolves.toEqual([undefined]);
    await other.dispose();
  });

  it('refuses buffers and events of the wrong owner, ranges outside, and use after dispose', async () => {
    const [first, second] = world.ranks;
    const stream = first!.createStream();
    const foreign = second!.allocate(8);
    const own = first!.allocate(8);
    expect(() => stream.fill(foreign, 0)).toThrow(expect.objectContaining({ code: 'ERR_FOREIGN_OBJECT' }));
    expect(() => stream.fill(own, 0, 4, 8)).toThrow(expect.objectContaining({ code: 'ERR_OUT_OF_BOUNDS' }));
    expect(() => stream.fill(own, 256)).toThrow(expect.objectContaining({ code: 'ERR_INVALID_ARGUMENT' }));
    expect(() => stream.copy({ buffer: own }, { buffer: own, byteOffset: 2 }, 4)).toThrow(
      expect.objectContaining({ code: 'ERR_OVERLAP' }),
    );
    await own.dispose();
    expect(() => stream.fill(own, 0)).toThrow(expect.objectContaining({ code: 'ERR_DISPOSED' }));
  });

  it('rejects when the memory of a host array was transferred away before its turn', async () => {
    const [comm] = world.ranks;
    const buffer = comm!.allocate(8);
    const stream = comm!.createStream();
    for (const copy of ['upload', 'download'] as const) {
      const host = new Uint8Array(8);
      world.faults.stop(0);
      if (copy === 'upload') stream.upload(buffer, host);
      else stream.download(host, buffer);
      structuredClone(host.buffer, { transfer: [host.buffer] });
      world.faults.resume(0);
      await expect(stream.synchronize()).rejects.toMatchObject({ code: 'ERR_INVALID_ARGUMENT', op: copy });
    }
    stream.fill(buffer, 1);
    await stream.synchronize();
  });

  it('ends waits with ERR_ABORTED when its rank is aborted', async () => {
    const [first, second] = world.ranks;
    const [stream, peer] = [first!.createStream(), second!.createStream()];
    stream.barrier();
    peer.barrier();
    await Promise.all([stream.synchronize(), peer.synchronize()]);
    stream.barrier();
    first!.abort('shutting down');
    await expect(stream.synchronize()).rejects.toMatchObject({
      code: 'ERR_ABORTED',
      message: expect.stringContaining('shutting down'),
    });
  });
});

describe('Window', () => {
  it('is registered by all ranks together and keeps its buffer busy', async () => {
    const windows = await world.run((comm) => comm.registerWindow(comm.allocate(64)));
    windows[1]!.view('u32', 4, 2).fill(7);
    expect([...windows[1]!.buffer.view('u32')].slice(1, 3)).toEqual([7, 7]);
    await Promise.all(windows.map((window) => window.dispose()));
    await Promise.all(windows.map((window) => window.buffer.dispose()));
  });
});
