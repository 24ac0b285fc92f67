// SPDX-License-Identifier: Apache-2.0
// Several operations in flight: open sends, handles in any order, several streams, graphs with contexts of their own.

import { describe, expect, it } from 'vitest';
import { absentRange, type EpLayout } from '../../contract/index.js';
import { code, error, inWorld, ok, refused, type TestWorld, value } from '../harness.test-util.js';
import {
  checkDispatched,
  combineCall,
  dispatchCall,
  enqueueStep,
  freeSteps,
  type RankStep,
  routeCall,
} from './ep-calls.test-util.js';
import { combineStep } from './ep-combine.test-util.js';
import { random, randomRouting } from './ep-data.test-util.js';
import { EpWorld, placementOf, rowBytesOf, type Shape } from './ep-world.test-util.js';

const shape: Shape = { ranks: 3, experts: 6, topK: 2, hidden: 16, dtype: 'bf16', maxTokens: 4 };
const rules = { placement: placementOf(shape) };

const inGroup = (
  workers: number,
  body: (world: EpWorld, test: TestWorld) => Promise<void>,
  options: Parameters<typeof EpWorld.open>[2] = {},
): Promise<void> =>
  inWorld(shape.ranks, { workers }, async (test) => body(await EpWorld.open(test, shape, options), test));

/** Routes on all ranks and waits, so that what follows can be enqueued as it likes. */
async function routed(
  world: EpWorld,
  layout: EpLayout,
  handles: readonly number[],
  next: () => number,
): Promise<readonly RankStep[]> {
  const steps = enqueueStep(world, layout, handles, rules, next);
  await world.finish();
  return steps;
}

function resend(
  world: EpWorld,
  handle: number,
  rank: number,
  step: RankStep,
  sendOnly: boolean,
  stream = world.streams[rank]!,
): number {
  return world.ep.enqueueDispatch(
    handle,
    stream,
    dispatchCall(shape, {
      tokens: step.ranges.tokens!,
      topkWeights: step.ranges.topkWeights!,
      outTokens: step.ranges.outTokens!,
      outRows: step.outRows,
      outWeights: step.ranges.outWeights!,
      outTopkIdx: { ...step.ranges.outTopkIdx!, entryBytes: 4 },
      expertCounts: { ...step.ranges.expertCounts!, entryBytes: 4 },
      sourceCounts: { ...step.ranges.sourceCounts!, entryBytes: 4 },
      sendOnly,
    }),
  );
}

function poison(world: EpWorld, steps: readonly RankStep[]): void {
  for (const { ranges, outRows } of steps)
    world.bytes(ranges.outTokens!, outRows * rowBytesOf(shape)).fill(0xa5);
}

describe.each(['expert-major', 'rank-major'] as const)('sends in %s', (layout) => {
  it.each([1, 2, 8])('of several handles complete in any order with %i workers', async (workers) => {
    await inGroup(workers, async (world, test) => {
      const next = random(workers);
      const all = [0, 1, 2].map(() => world.handles(layout));
      const steps: (readonly RankStep[])[] = [];
      for (const handles of all) steps.push(await routed(world, layout, handles, next));
      for (let round = 0; round < 20; round++) {
        for (const list of steps) poison(world, list);
        const order = [0, 1, 2].sort(() => next() - 0.5);
        const ends = [0, 1, 2].sort(() => next() - 0.5);
        world.streams.forEach((stream, rank) => {
          for (const i of order)
            ok(test.runtime, resend(world, all[i]![rank]!, rank, steps[i]![rank]!, true));
          for (const i of ends) ok(test.runtime, world.ep.enqueueComplete(all[i]![rank]!, stream));
        });
        await world.finish();
        for (const list of steps) checkDispatched(world, layout, list);
      }
      await combineStep(world, layout, all[1]!, steps[1]!, next, { sendOnly: true });
    });
  });
});

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

it('runs operations of two streams of a rank, whatever they wait for', async () => {
  await inGroup(2, async (world, test) => {
    const { runtime } = test;
    const next = random(4);
    const others = test.ranks.map((rank) => value(runtime.createStream(rank)));
    const [first, second] = [world.handles('rank-major'), world.handles('rank-major')];
    const a = await routed(world, 'rank-major', first, next);
    const b = await routed(world, 'rank-major', second, next);
    for (let round = 0; round < 30; round++) {
      poison(world, a);
      poison(world, b);
      if (round % 10 === 0) test.faults.delayRank(test.ranks[round % 3]!, 3);
      world.streams.forEach((_, rank) => {
        for (let i = 0; i < 3; i++) {
          ok(runtime, resend(world, first[rank]!, rank, a[rank]!, false));
          ok(runtime, resend(world, second[rank]!, rank, b[rank]!, false, others[rank]!));
        }
      });
      for (const stream of others) value(await runtime.synchronize(stream));
      await world.finish();
      checkDispatched(world, 'rank-major', a);
      checkDispatched(world, 'rank-major', b);
      for (const rank of test.ranks) test.faults.delayRank(rank, 0);
    }
  });
});

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

it('takes 1024 calls of a rank, and refuses one more', async () => {
  await inGroup(2, async (world, test) => {
    const { runtime } = test;
    const handle = world.handle(0, 'rank-major');
    test.faults.stopRank(test.ranks[0]!);
    const streams = [0, 1, 2, 3, 4].map(() => value(runtime.createStream(test.ranks[0]!)));
    const call = routeCall({ tokens: 0, topkIdx: { ...absentRange, entryBytes: 4 } });
    for (let i = 0; i < 1024; i++)
      ok(runtime, world.ep.enqueueRoute(handle, streams[Math.floor(i / 256)]!, call));
    expect(
      refused(runtime, world.ep.enqueueRoute(handle, streams[4]!, call), 'ERR_QUEUE_FULL').detail,
    ).toContain('1024');
    expect(
      refused(runtime, world.ep.enqueueRoute(handle, streams[3]!, call), 'ERR_QUEUE_FULL').detail,
    ).toContain('256');
    test.faults.resumeRank(test.ranks[0]!);
    for (const stream of streams) value(await runtime.synchronize(stream));
    ok(runtime, world.ep.enqueueRoute(handle, streams[4]!, call));
    value(await runtime.synchronize(streams[4]!));
  });
});
