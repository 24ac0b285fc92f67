// SPDX-License-Identifier: Apache-2.0
// Graphs replay route, dispatch and combine on new ids, between eager work of another handle.

import { describe, expect, it } from 'vitest';
import { code, error, ok, value } from '../harness.test-util.js';
import {
  checkDispatched,
  combineCall,
  dispatchCall,
  enqueueStep,
  freeSteps,
  routeCall,
} from './ep-calls.test-util.js';
import { inGroup, rules, shape } from './ep-contexts.test-util.js';
import { random, randomRouting } from './ep-data.test-util.js';
import { rowBytesOf } from './ep-world.test-util.js';

describe.each(['expert-major', 'rank-major', 'flat', 'packed'] as const)('graphs in %s', (layout) => {
  it('replay route, dispatch and combine on new ids, between eager work of another handle', async () => {
    await inGroup(2, async (world, test) => {
      const { runtime } = test;
      const next = random(12);
      const handles = world.handles(layout);
      const eager = world.handles(layout);
      const worst = { 'expert-major': 2 * 12, 'rank-major': 12, flat: 12, packed: 24 }[layout];
      const size = rowBytesOf(shape);
      const low = layout === 'expert-major' || layout === 'rank-major';
      const buffers = world.streams.map((_, rank) => ({
        ids: world.ids(rank, new Int32Array(8).fill(-1)),
        weights: world.allocate(rank, 32),
        tokens: world.allocate(rank, 4 * size),
        rows: world.allocate(rank, worst * size),
        out: world.allocate(rank, 4 * size),
      }));
      const graphs = world.streams.map((stream, rank) => {
        const { ids, weights, tokens, rows, out } = buffers[rank]!;
        const handle = handles[rank]!;
        ok(runtime, runtime.beginCapture(stream));
        ok(runtime, world.ep.enqueueRoute(handle, stream, routeCall({ tokens: 4, topkIdx: ids })));
        const dispatch = dispatchCall(shape, {
          tokens,
          topkWeights: weights,
          outTokens: rows,
          outRows: worst,
          sendOnly: low,
        });
        ok(runtime, world.ep.enqueueDispatch(handle, stream, dispatch));
        if (low) ok(runtime, world.ep.enqueueComplete(handle, stream));
        ok(
          runtime,
          world.ep.enqueueCombine(handle, stream, combineCall({ tokens: rows, rows: worst, outTokens: out })),
        );
        return value(runtime.endCapture(stream));
      });
      expect(world.ep.groupState(world.groups[0]!).reservedContexts).toBe(1);
      for (let round = 0; round < 25; round++) {
        const routings = world.streams.map(() => randomRouting(shape, next, 4));
        world.streams.forEach((stream, rank) => {
          world.bytes(buffers[rank]!.ids, 32).set(new Uint8Array(routings[rank]!.ids.buffer));
          world
            .bytes(buffers[rank]!.weights, 32)
            .set(new Uint8Array(Float32Array.from({ length: 8 }, () => 1).buffer));
          // Powers of two: every sum of them is exact.
          const values = Uint16Array.from(
            { length: 4 * shape.hidden },
            (_, i) => 0x3f80 + ((i + rank + round) % 4) * 0x80,
          );
          world.bytes(buffers[rank]!.tokens, 4 * size).set(new Uint8Array(values.buffer));
          ok(runtime, runtime.launchGraph(graphs[rank]!, stream));
          if (round % 3 === 0) ok(runtime, runtime.launchGraph(graphs[rank]!, stream));
        });
        if (round % 4 === 0) {
          const steps = enqueueStep(world, layout, eager, rules, next);
          await world.finish();
          checkDispatched(world, layout, steps);
          freeSteps(world, steps);
        }
        await world.finish();
        routings.forEach(({ ids }, rank) => {
          const got = new Uint16Array(world.bytes(buffers[rank]!.out, 4 * size).slice().buffer);
          for (let token = 0; token < 4; token++) {
            const live = [...ids.subarray(token * 2, token * 2 + 2)].filter((id) => id >= 0);
            const copies =
              (low && layout === 'rank-major') || layout === 'flat'
                ? new Set(live.map((id) => Math.floor(id / 2))).size
                : live.length;
            const x = 2 ** ((token * shape.hidden + rank + round) % 4);
            const want = new Uint32Array(Float32Array.of(copies * x).buffer)[0]! >>> 16;
            expect(got[token * shape.hidden]).toBe(want);
          }
        });
      }
      expect(error(await world.ep.disposeEpHandle(handles[0]!)).code).toBe(code('ERR_BUSY'));
      for (const graph of graphs) ok(runtime, runtime.freeGraph(graph));
      expect(world.ep.groupState(world.groups[0]!).reservedContexts).toBe(0);
      value(await world.ep.disposeEpHandle(handles[0]!));
    });
  });
});
