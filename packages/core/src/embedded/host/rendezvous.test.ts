// SPDX-License-Identifier: Apache-2.0
// Exchanges: order, topics, deadlines that name who is missing, and who comes late.

import { describe, expect, it } from 'vitest';
import { code, error, inWorld, value } from '../harness.test-util.js';

const text = new TextEncoder();

describe('exchange', () => {
  it('gathers from all ranks, call by call, whatever their order', async () => {
    await inWorld(9, {}, async ({ runtime, ranks }) => {
      const order = [4, 1, 8, 0, 3, 2, 7, 6, 5];
      const results = await Promise.all(
        order.flatMap((rank) =>
          ['first', 'second'].map((topic) =>
            runtime.exchange(ranks[rank]!, topic, text.encode(`${topic}${rank}`)),
          ),
        ),
      );
      results.forEach((result, i) => {
        const topic = i % 2 === 0 ? 'first' : 'second';
        expect(value(result).map((bytes) => new TextDecoder().decode(bytes))).toEqual(
          ranks.map((_, rank) => `${topic}${rank}`),
        );
      });
    });
  });

  it('takes the payload as it was at the call', async () => {
    await inWorld(2, {}, async ({ runtime, ranks }) => {
      const payload = Uint8Array.of(1);
      const first = runtime.exchange(ranks[0]!, 't', payload);
      payload[0] = 2;
      const second = runtime.exchange(ranks[1]!, 't', payload);
      expect(value(await first)).toEqual([Uint8Array.of(1), Uint8Array.of(2)]);
      expect(value(await second)[0]).not.toBe(value(await first)[0]);
    });
  });

  it('refuses different topics on every rank, names the odd one, and goes on', async () => {
    await inWorld(3, {}, async ({ runtime, ranks }) => {
      const topics = ['a', 'b', 'a'];
      const outcomes = await Promise.all(
        ranks.map((rank, i) => runtime.exchange(rank, topics[i]!, new Uint8Array(0))),
      );
      for (const [rank, outcome] of outcomes.entries())
        expect(error(outcome)).toMatchObject({
          code: code('ERR_DISAGREEMENT'),
          rank,
          peer: 1,
          expected: 'a',
          seen: 'b',
        });
      for (const outcome of await Promise.all(
        ranks.map((rank) => runtime.exchange(rank, 'c', new Uint8Array(0))),
      ))
        value(outcome);
    });
  });

  it('times out naming who is missing; a late rank gets an error too, and nobody is out of step silently', async () => {
    await inWorld(4, { timeoutMs: 60 }, async ({ runtime, ranks }) => {
      const none = new Uint8Array(0);
      const outcomes = await Promise.all([0, 2].map((rank) => runtime.exchange(ranks[rank]!, 'meet', none)));
      for (const outcome of outcomes) {
        expect(error(outcome)).toMatchObject({ code: code('ERR_TIMEOUT'), op: 'exchange', peer: 1 });
        expect(error(outcome).detail).toContain('ranks 1, 3');
      }
      const late = error(await runtime.exchange(ranks[1]!, 'meet', none));
      expect(late).toMatchObject({ code: code('ERR_TIMEOUT'), rank: 1, peer: 0 });
      expect(late.detail).toContain('given up');
      for (const rank of [0, 1, 2]) {
        expect(runtime.poisonOf(ranks[rank]!)?.code).toBe(code('ERR_TIMEOUT'));
        expect(error(await runtime.exchange(ranks[rank]!, 'next', none)).code).toBe(code('ERR_POISONED'));
      }
      expect(runtime.poisonOf(ranks[3]!)).toBeUndefined();
    });
  });
});
