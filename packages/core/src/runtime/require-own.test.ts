// SPDX-License-Identifier: Apache-2.0
// Handles repeat between kinds and worlds; what is no buffer of this rank is refused by name and nothing is written.

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { localWorld } from '../world/local-world.js';
import type { World } from '../world/world.js';
import type { Communicator } from './communicator.js';

let world: World;
let other: World;
let rank: Communicator;
beforeEach(async () => {
  world = await localWorld({ ranks: 2, backend: 'embedded', timeoutMs: 1000 });
  other = await localWorld({ ranks: 1, backend: 'embedded', timeoutMs: 1000 });
  rank = world.ranks[0]!;
});
afterEach(() => Promise.all([world.dispose(), other.dispose()]));

describe('a stream', () => {
  it('refuses buffers and events of another world, whose handles are numbers of this one too', async () => {
    const stream = rank.createStream();
    const mine = Array.from({ length: 8 }, () => rank.allocate(16));
    for (const buffer of mine) buffer.view('u8').fill(7);
    const stranger = other.ranks[0]!;
    for (let i = 0; i < 16; i++) {
      const buffer = stranger.allocate(16);
      const event = stranger.createEvent();
      const foreign = expect.objectContaining({ code: 'ERR_FOREIGN_OBJECT', field: 'buffer' });
      expect(() => stream.fill(buffer, 1)).toThrow(foreign);
      expect(() => stream.upload(buffer, new Uint8Array(4))).toThrow(foreign);
      expect(() => stream.download(new Uint8Array(4), buffer)).toThrow(foreign);
      expect(() => stream.record(event)).toThrow(expect.objectContaining({ code: 'ERR_FOREIGN_OBJECT' }));
      expect(() => stream.wait(event)).toThrow(expect.objectContaining({ code: 'ERR_FOREIGN_OBJECT' }));
      const range = { buffer };
      expect(() => stream.copy({ buffer: mine[0]! }, range, 4)).toThrow(
        /^source\.buffer is a buffer of rank 0 of another world/,
      );
      expect(() => stream.copy(range, { buffer: mine[0]! }, 4)).toThrow(/^destination\.buffer/);
      await expect(rank.registerWindow(buffer)).rejects.toMatchObject({ code: 'ERR_FOREIGN_OBJECT' });
    }
    await stream.synchronize();
    for (const buffer of mine) expect([...buffer.view('u8')]).toEqual(Array(16).fill(7));
  });

  it('waits for events of other ranks of its world, but records its own only', async () => {
    const event = world.ranks[1]!.createEvent();
    const stream = rank.createStream();
    stream.wait(event);
    expect(() => stream.record(event)).toThrow(expect.objectContaining({ code: 'ERR_FOREIGN_OBJECT' }));
    await stream.synchronize();
  });

  it('names the argument that is of another kind', () => {
    const stream = rank.createStream();
    const buffer = rank.allocate(16);
    for (const wrong of [undefined, null, 3, {}, { handle: buffer.handle }, rank.createEvent(), stream]) {
      const refused = (field: string) => expect.objectContaining({ code: 'ERR_INVALID_ARGUMENT', field });
      expect(() => stream.fill(wrong as never, 0)).toThrow(refused('buffer'));
      expect(() => stream.launch(wrong as never)).toThrow(refused('graph'));
      expect(() => stream.copy(wrong as never, { buffer }, 1)).toThrow(refused('destination.buffer'));
      expect(() => stream.upload(buffer, wrong as never)).toThrow(refused('host'));
    }
    expect(() => stream.record(buffer as never)).toThrow(/event must be an event, got an object/);
  });

  it('names the argument that was disposed', async () => {
    const stream = rank.createStream();
    const [buffer, event, graph] = [rank.allocate(8), rank.createEvent(), stream.capture(() => {})];
    await Promise.all([buffer.dispose(), event.dispose(), graph.dispose()]);
    const gone = (field: string) => expect.objectContaining({ code: 'ERR_DISPOSED', field });
    expect(() => stream.fill(buffer, 0)).toThrow(gone('buffer'));
    expect(() => stream.upload(buffer, new Uint8Array(1))).toThrow(gone('buffer'));
    expect(() => stream.copy({ buffer: rank.allocate(8) }, { buffer }, 1)).toThrow(gone('source.buffer'));
    expect(() => stream.record(event)).toThrow(gone('event'));
    expect(() => stream.wait(event)).toThrow(gone('event'));
    expect(() => stream.launch(graph)).toThrow(gone('graph'));
    await expect(rank.registerWindow(buffer)).rejects.toEqual(gone('buffer'));
  });

  it('names the end of a range that is no integer or lies outside, and enqueues nothing', () => {
    const stream = rank.createStream();
    const [buffer, other] = [rank.allocate(16), rank.allocate(32)];
    const host = new Uint8Array(8);
    const outside = (field: string) => expect.objectContaining({ code: 'ERR_OUT_OF_BOUNDS', field });
    const wrong = (field: string) => expect.objectContaining({ code: 'ERR_INVALID_ARGUMENT', field });
    expect(() => stream.copy({ buffer }, { buffer: other }, 17)).toThrow(outside('bytes'));
    expect(() => stream.copy({ buffer: other }, { buffer, byteOffset: 17 }, 1)).toThrow(
      outside('source.byteOffset'),
    );
    expect(() => stream.copy({ buffer, byteOffset: -1 }, { buffer: other }, 1)).toThrow(
      wrong('destination.byteOffset'),
    );
    expect(() => stream.copy({ buffer }, { buffer: other }, 0.5)).toThrow(wrong('bytes'));
    expect(() => stream.fill(buffer, 1, 17)).toThrow(outside('byteOffset'));
    expect(() => stream.fill(buffer, 1, 8, 9)).toThrow(outside('bytes'));
    expect(() => stream.fill(buffer, '1' as never)).toThrow(wrong('value'));
    expect(() => stream.upload(buffer, host, 9)).toThrow(outside('host'));
    expect(() => stream.download(host, buffer, '0' as never)).toThrow(wrong('byteOffset'));
    expect(stream.queued).toBe(0);
  });

  it('refuses host memory that was given away', () => {
    const host = new Uint8Array(8);
    structuredClone(host.buffer, { transfer: [host.buffer] });
    expect(() => rank.createStream().upload(rank.allocate(8), host)).toThrow(
      expect.objectContaining({ code: 'ERR_INVALID_ARGUMENT', field: 'host' }),
    );
  });

  it('refuses to capture an async function, and leaves capture', async () => {
    const stream = rank.createStream();
    const buffer = rank.allocate(8);
    const late = async (): Promise<void> => {
      await Promise.resolve();
    };
    expect(() => stream.capture(late as never)).toThrow(/record returned a promise/);
    expect(() => stream.capture(5 as never)).toThrow(/record must be a function, got 5/);
    stream.launch(stream.capture(() => stream.fill(buffer, 3)));
    await stream.synchronize();
    expect(buffer.view('u8')[7]).toBe(3);
  });
});

describe('a communicator', () => {
  it('refuses kinds, topics, payloads, reasons and fields that it cannot keep', async () => {
    const wrong = expect.objectContaining({ code: 'ERR_INVALID_ARGUMENT' });
    expect(() => rank.allocate(8, 'shared' as never)).toThrow(wrong);
    expect(() => rank.allocate(Symbol('x') as never)).toThrow(wrong);
    expect(() => rank.abort(undefined as never)).toThrow(wrong);
    for (const call of [
      rank.exchange(1 as never, new Uint8Array(1)),
      rank.exchange('t', 'text' as never),
      rank.agree(1 as never, {}),
      rank.agree('t', null as never),
      rank.agree('t', { nan: Number.NaN }),
      rank.agree('t', { big: 1n as never }),
      rank.agree('t', { nested: {} as never }),
    ])
      await expect(call).rejects.toEqual(wrong);
  });
});
