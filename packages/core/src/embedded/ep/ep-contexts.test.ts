// SPDX-License-Identifier: Apache-2.0
// Open sends and graphs hold contexts of their own; one more is refused and changes nothing.

import { expect, it } from 'vitest';
import { code, error, ok, refused, value } from '../harness.test-util.js';
import { checkDispatched } from './ep-calls.test-util.js';
import { inGroup, poison, resend, routed } from './ep-contexts.test-util.js';
import { random } from './ep-data.test-util.js';

it('holds a context for each open send; one more is refused and changes nothing', async () => {
  await inGroup(
    2,
    async (world, test) => {
      const next = random(2);
      const [first, second] = [world.handles('expert-major'), world.handles('expert-major')];
      const a = await routed(world, 'expert-major', first, next);
      const b = await routed(world, 'expert-major', second, next);
      world.streams.forEach((stream, rank) => {
        ok(test.runtime, resend(world, first[rank]!, rank, a[rank]!, true));
        ok(test.runtime, resend(world, second[rank]!, rank, b[rank]!, true));
        const record = refused(
          test.runtime,
          resend(world, first[rank]!, rank, a[rank]!, true),
          'ERR_CONTEXTS',
        );
        expect(record.detail).toContain('open sends 2');
        refused(test.runtime, test.runtime.freeBuffer(a[rank]!.ranges.tokens!.buffer), 'ERR_BUSY');
        ok(test.runtime, world.ep.enqueueComplete(first[rank]!, stream));
        ok(test.runtime, resend(world, first[rank]!, rank, a[rank]!, false));
        ok(test.runtime, world.ep.enqueueComplete(second[rank]!, stream));
      });
      await world.finish();
      checkDispatched(world, 'expert-major', a);
      checkDispatched(world, 'expert-major', b);
    },
    { contexts: 2 },
  );
});

it('reserves contexts for graphs until they are freed, and refuses what would leave a graph in half', async () => {
  await inGroup(
    2,
    async (world, test) => {
      const { runtime } = test;
      const next = random(3);
      const [first, second] = [world.handles('rank-major'), world.handles('rank-major')];
      const a = await routed(world, 'rank-major', first, next);
      const b = await routed(world, 'rank-major', second, next);
      const capture = (rank: number, body: (stream: number) => void) => {
        const stream = world.streams[rank]!;
        ok(runtime, runtime.beginCapture(stream));
        body(stream);
        return runtime.endCapture(stream);
      };
      const graphs = world.streams.map((_, rank) =>
        value(
          capture(rank, (stream) => {
            ok(runtime, resend(world, first[rank]!, rank, a[rank]!, true));
            ok(runtime, resend(world, second[rank]!, rank, b[rank]!, true));
            ok(runtime, world.ep.enqueueComplete(second[rank]!, stream));
            ok(runtime, world.ep.enqueueComplete(first[rank]!, stream));
          }),
        ),
      );
      expect(world.ep.groupState(world.groups[1]!).reservedContexts).toBe(2);
      for (const [rank] of world.streams.entries()) {
        expect(
          refused(runtime, resend(world, first[rank]!, rank, a[rank]!, false), 'ERR_CONTEXTS').detail,
        ).toContain('graphs hold 2');
        poison(world, a);
        ok(runtime, runtime.launchGraph(graphs[rank]!, world.streams[rank]!));
        ok(runtime, runtime.launchGraph(graphs[rank]!, world.streams[rank]!));
        ok(runtime, runtime.freeGraph(graphs[rank]!));
        ok(runtime, resend(world, second[rank]!, rank, b[rank]!, false));
      }
      await world.finish();
      checkDispatched(world, 'rank-major', a);
      checkDispatched(world, 'rank-major', b);
      const half = capture(0, () => ok(runtime, resend(world, first[0]!, 0, a[0]!, true)));
      expect(error(half)).toMatchObject({ code: code('ERR_INVALID_STATE') });
      expect(error(half).detail).toContain('sends open');
      world.streams.forEach((_, rank) => {
        ok(runtime, resend(world, first[rank]!, rank, a[rank]!, true));
      });
      capture(0, (stream) => {
        expect(
          refused(runtime, world.ep.enqueueComplete(first[0]!, stream), 'ERR_INVALID_STATE').detail,
        ).toContain('graph');
      });
      world.streams.forEach((stream, rank) => {
        ok(runtime, world.ep.enqueueComplete(first[rank]!, stream));
      });
      await world.finish();
      expect(world.ep.groupState(world.groups[0]!).reservedContexts).toBe(0);
    },
    { contexts: 2 },
  );
});
