// SPDX-License-Identifier: Apache-2.0
// The arena hands out separate ranges, takes them back, and never grows while what is live stays the same.

import fc from 'fast-check';
import { expect, it } from 'vitest';
import { addressOf, blockOf, offsetOf } from './address.js';
import { Arena } from './arena.js';
import { FreeSpans } from './free-spans.js';

const mebibyte = 2 ** 20;

it('addresses hold block and offset exactly', () => {
  const address = addressOf(8191, 2 ** 40 - 1);
  expect(Number.isSafeInteger(address)).toBe(true);
  expect([blockOf(address), offsetOf(address)]).toEqual([8191, 2 ** 40 - 1]);
});

it('free spans: random takes and releases never overlap and coalesce to the whole', () => {
  fc.assert(
    fc.property(
      fc.array(fc.record({ take: fc.boolean(), size: fc.integer({ min: 1, max: 40 }) })),
      (steps) => {
        const spans = new FreeSpans(256, 256 * 400);
        const live: { offset: number; bytes: number }[] = [];
        for (const { take, size } of steps) {
          if (take || live.length === 0) {
            const offset = spans.take(size * 256);
            if (offset === undefined) continue;
            for (const other of live) {
              expect(offset + size * 256 <= other.offset || other.offset + other.bytes <= offset).toBe(true);
            }
            live.push({ offset, bytes: size * 256 });
          } else {
            const [gone] = live.splice(size % live.length, 1);
            spans.release(gone!.offset, gone!.bytes);
          }
        }
        for (const { offset, bytes } of live) spans.release(offset, bytes);
        expect(spans.fit(256 * 399)).toBe(256 * 399);
      },
    ),
  );
});

it.each([true, false])('reuses what was released (kernels %s)', (kernels) => {
  const arena = new Arena({ kernels, limit: 2 ** 34 });
  const round = (): number[] => [1000, 5 * mebibyte, 1, 70_000].map((bytes) => arena.allocate(bytes)!);
  for (const address of round()) arena.release(address);
  const reserved = arena.reservedBytes;
  for (let i = 0; i < 100; i++) for (const address of round().reverse()) arena.release(address);
  expect(arena.reservedBytes).toBe(reserved);
  expect(arena.liveBytes).toBe(0);
});

it('announces a block before it hands anything out, and knows all blocks', () => {
  const arena = new Arena({ kernels: false, limit: 2 ** 34 });
  const seen: number[] = [];
  const stop = arena.onBlock((block) => seen.push(block.id));
  const first = arena.allocate(100 * mebibyte)!;
  const second = arena.allocate(100 * mebibyte)!;
  stop();
  expect(seen).toEqual([blockOf(first), blockOf(second)]);
  expect(arena.blocks.map((block) => block.id)).toEqual(seen);
});

it('clears what must start at zero', () => {
  const arena = new Arena({ kernels: true, limit: 2 ** 34 });
  const address = arena.allocate(512)!;
  new Uint8Array(arena.space(address).buffer, offsetOf(address), 512).fill(1);
  arena.release(address);
  const again = arena.allocateZeroed(512)!;
  expect(again).toBe(address);
  expect(new Uint8Array(arena.space(again).buffer, offsetOf(again), 512).every((byte) => byte === 0)).toBe(
    true,
  );
});

it('gives a block beyond 4 GiB to what needs it', () => {
  const arena = new Arena({ kernels: true, limit: 2 ** 36 });
  const address = arena.allocate(6 * 2 ** 30)!;
  const { buffer, memory } = arena.space(address);
  expect(memory).toBeUndefined();
  const far = new Uint8Array(buffer, 5 * 2 ** 30, 16);
  far[3] = 9;
  expect(far[3]).toBe(9);
});

it('refuses more than its limit and what the engine cannot give', () => {
  expect(new Arena({ kernels: true, limit: mebibyte }).allocate(2 * mebibyte)).toBeUndefined();
  expect(new Arena({ kernels: true, limit: Number.MAX_SAFE_INTEGER }).allocate(2 ** 50)).toBeUndefined();
});
