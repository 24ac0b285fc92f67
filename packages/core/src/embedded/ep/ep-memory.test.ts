// SPDX-License-Identifier: Apache-2.0
// Lifetimes: what is in use cannot be freed, what is disposed is gone, and rounds of everything leave nothing behind.

import { expect, it } from 'vitest';
import { code, error, inWorld, ok, refused, value } from '../harness.test-util.js';
import { processArena } from '../memory/arena.js';
import { checkDispatched, dispatchCall, enqueueStep, freeSteps, routeCall } from './ep-calls.test-util.js';
import { combineStep } from './ep-combine.test-util.js';
import { random } from './ep-data.test-util.js';
import { absentCounter, EpWorld, handleLayout, placementOf, type Shape } from './ep-world.test-util.js';

const shape: Shape = { ranks: 2, experts: 4, topK: 2, hidden: 16, dtype: 'bf16', maxTokens: 3 };
const rules = { placement: placementOf(shape) };

it('keeps the memory of groups and handles apart from each other and from tensors', async () => {
  await inWorld(2, {}, async (test) => {
    const world = await EpWorld.open(test, shape);
    const { ep, groups } = world;
    const sections = handleLayout(shape, 2);
    const memory = world.allocate(0, 4096);
    const open = (byteOffset: number) =>
      ep.createEpHandle(groups[0]!, {
        layout: 'flat',
        alignment: 1,
        memory: { ...memory, byteOffset },
        sections,
      });
    const handle = value(open(0));
    expect(error(open(256))).toMatchObject({ code: code('ERR_OVERLAP'), rank: 0 });
    value(open(1024));
    const call = routeCall({ tokens: 0, topkIdx: absentCounter, total: { ...memory, entryBytes: 4 } });
    const record = refused(test.runtime, ep.enqueueRoute(handle, world.streams[0]!, call), 'ERR_OVERLAP');
    expect(record.detail).toContain('total of route lies in memory that a handle');
  });
});

it('keeps buffers, handles and groups busy while they are used', async () => {
  await inWorld(2, { timeoutMs: 3000 }, async (test) => {
    const { runtime } = test;
    const world = await EpWorld.open(test, shape);
    const { ep, groups } = world;
    const handles = world.handles('rank-major');
    const config = world.config(0);
    const next = random(1);
    test.faults.stopRank(test.ranks[1]!);
    const steps = enqueueStep(world, 'rank-major', handles, rules, next);
    for (const name of ['tokens', 'outTokens', 'topkWeights', 'sourceCounts'])
      refused(runtime, runtime.freeBuffer(steps[0]!.ranges[name]!.buffer), 'ERR_BUSY');
    expect(error(await ep.disposeEpHandle(handles[0]!)).code).toBe(code('ERR_BUSY'));
    expect(error(await ep.disposeEpGroup(groups[0]!)).code).toBe(code('ERR_BUSY'));
    test.faults.resumeRank(test.ranks[1]!);
    await world.finish();
    ok(
      runtime,
      ep.enqueueDispatch(
        handles[0]!,
        world.streams[0]!,
        dispatchCall(shape, {
          tokens: steps[0]!.ranges.tokens!,
          topkWeights: steps[0]!.ranges.topkWeights!,
          outTokens: steps[0]!.ranges.outTokens!,
          outRows: steps[0]!.outRows,
          sendOnly: true,
        }),
      ),
    );
    value(await runtime.synchronize(world.streams[0]!));
    expect(
      refused(runtime, runtime.freeBuffer(steps[0]!.ranges.tokens!.buffer), 'ERR_BUSY').detail,
    ).toContain('send');
    expect(error(await ep.disposeEpHandle(handles[0]!)).detail).toContain('open send');
    ok(runtime, ep.enqueueComplete(handles[0]!, world.streams[0]!));
    ok(
      runtime,
      ep.enqueueDispatch(
        handles[1]!,
        world.streams[1]!,
        dispatchCall(shape, {
          tokens: steps[1]!.ranges.tokens!,
          topkWeights: steps[1]!.ranges.topkWeights!,
          outTokens: steps[1]!.ranges.outTokens!,
          outRows: steps[1]!.outRows,
        }),
      ),
    );
    await world.finish();
    for (const handle of handles) value(await ep.disposeEpHandle(handle));
    expect(error(await ep.disposeEpHandle(handles[0]!)).code).toBe(code('ERR_DISPOSED'));
    refused(runtime, ep.enqueueComplete(handles[0]!, world.streams[0]!), 'ERR_DISPOSED');
    value(await ep.disposeEpGroup(groups[0]!));
    expect(
      error(
        ep.createEpHandle(groups[0]!, {
          layout: 'flat',
          alignment: 1,
          memory: config.memory,
          sections: { bytes: 0 } as never,
        }),
      ).code,
    ).toBe(code('ERR_DISPOSED'));
    freeSteps(world, steps);
  });
});

it('leaves a peer undisturbed that is behind when its own group is disposed and its memory used again', async () => {
  await inWorld(2, { timeoutMs: 3000 }, async (test) => {
    const world = await EpWorld.open(test, shape);
    const handles = world.handles('flat');
    const next = random(2);
    const steps = enqueueStep(world, 'flat', handles, rules, next);
    await world.finish();
    value(await world.ep.disposeEpHandle(handles[0]!));
    value(await world.ep.disposeEpGroup(world.groups[0]!));
    checkDispatched(world, 'flat', steps);
    value(await world.ep.readCounts(handles[1]!));
    value(await test.runtime.disposeRank(test.ranks[0]!));
  });
});

it('is flat over 300 rounds of groups, handles, graphs, sends and failures', async () => {
  await inWorld(2, { timeoutMs: 5000 }, async (test) => {
    const { runtime } = test;
    const next = random(3);
    let live = 0;
    let reserved = 0;
    for (let round = 0; round < 300; round++) {
      const before = runtime.memoryUsage().allocatedBytes;
      const world = await EpWorld.open(test, shape, { mask: true });
      const layout = (['expert-major', 'rank-major', 'flat', 'packed'] as const)[round % 4]!;
      const handles = world.handles(layout);
      const steps = enqueueStep(world, layout, handles, rules, next);
      await world.finish();
      await combineStep(world, layout, handles, steps, next);
      const graphs = world.streams.map((stream, rank) => {
        ok(runtime, runtime.beginCapture(stream));
        const { ranges, outRows } = steps[rank]!;
        ok(
          runtime,
          world.ep.enqueueDispatch(
            handles[rank]!,
            stream,
            dispatchCall(shape, {
              tokens: ranges.tokens!,
              topkWeights: ranges.topkWeights!,
              outTokens: ranges.outTokens!,
              outRows,
            }),
          ),
        );
        const graph = value(runtime.endCapture(stream));
        ok(runtime, runtime.launchGraph(graph, stream));
        return graph;
      });
      await world.finish();
      if (round % 3 === 0)
        for (const group of world.groups) void world.ep.changeMembership(group, Uint8Array.of(1, 1));
      if (round % 3 === 0) await new Promise((resolve) => setImmediate(resolve));
      for (const graph of graphs) ok(runtime, runtime.freeGraph(graph));
      freeSteps(world, steps);
      for (const handle of handles) value(await world.ep.disposeEpHandle(handle));
      for (const group of world.groups) value(await world.ep.disposeEpGroup(group));
      world.release();
      for (const stream of world.streams) ok(runtime, runtime.freeStream(stream));
      expect(runtime.memoryUsage().allocatedBytes).toBe(before);
      if (round === 20) {
        live = processArena.liveBytes;
        reserved = processArena.reservedBytes;
      }
      if (round > 20) expect(processArena.liveBytes).toBe(live);
    }
    expect(processArena.reservedBytes).toBeLessThanOrEqual(reserved + 2 ** 20);
  });
}, 120_000);
