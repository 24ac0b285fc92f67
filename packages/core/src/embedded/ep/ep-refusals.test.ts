// SPDX-License-Identifier: Apache-2.0
// What is refused before it is enqueued: calls out of order, ranges that do not fit, unsound groups and handles.

import { expect, it } from 'vitest';
import { absentRange } from '../../contract/index.js';
import { code, error, inWorld, ok, refused, type TestWorld } from '../harness.test-util.js';
import { combineCall, dispatchCall, enqueueStep, routeCall } from './ep-calls.test-util.js';
import { random, randomRouting } from './ep-data.test-util.js';
import { EpWorld, groupLayout, handleLayout, placementOf, type Shape } from './ep-world.test-util.js';

const shape: Shape = { ranks: 3, experts: 6, topK: 2, hidden: 16, dtype: 'f32', maxTokens: 4 };
const rules = { placement: placementOf(shape) };

const inGroup = (
  body: (world: EpWorld, test: TestWorld) => Promise<void>,
  options: Parameters<typeof EpWorld.open>[2] = {},
): Promise<void> =>
  inWorld(shape.ranks, { timeoutMs: 2000 }, async (test) =>
    body(await EpWorld.open(test, shape, options), test),
  );

it('refuses calls out of order and enqueues nothing', async () => {
  await inGroup(async (world, test) => {
    const { ep } = world;
    const { runtime } = test;
    const handle = world.handle(0, 'rank-major');
    const stream = world.streams[0]!;
    const dispatch = dispatchCall(shape, {
      outTokens: world.allocate(0, 12 * 64),
      outRows: 12,
      sendOnly: true,
    });
    const combine = combineCall({ tokens: world.allocate(0, 12 * 64), rows: 12 });
    const topkIdx = { ...absentRange, entryBytes: 4 as const };
    expect(
      refused(runtime, ep.enqueueDispatch(handle, stream, dispatch), 'ERR_INVALID_STATE').detail,
    ).toContain('routed');
    expect(
      refused(runtime, ep.enqueueCombine(handle, stream, combine), 'ERR_INVALID_STATE').detail,
    ).toContain('routed');
    expect(refused(runtime, ep.enqueueComplete(handle, stream), 'ERR_INVALID_STATE').detail).toContain(
      'no send',
    );
    expect(error(await ep.readCounts(handle)).code).toBe(code('ERR_INVALID_STATE'));
    ok(runtime, ep.enqueueRoute(handle, stream, routeCall({ tokens: 0, topkIdx })));
    expect(
      refused(runtime, ep.enqueueCombine(handle, stream, combine), 'ERR_INVALID_STATE').detail,
    ).toContain('dispatched');
    ok(runtime, ep.enqueueDispatch(handle, stream, dispatch));
    expect(
      refused(
        runtime,
        ep.enqueueRoute(handle, stream, routeCall({ tokens: 0, topkIdx })),
        'ERR_INVALID_STATE',
      ).detail,
    ).toContain('open');
    expect(runtime.queued(stream)).toBeLessThanOrEqual(2);
    ok(runtime, runtime.abortRank(test.ranks[0]!, 'the others do not dispatch'));
  });
});

it('refuses ranges, sizes and fields that do not fit, and objects of other ranks', async () => {
  await inGroup(async (world, test) => {
    const { ep } = world;
    const { runtime } = test;
    const handle = world.handle(0, 'flat');
    const expert = world.handle(0, 'expert-major');
    const stream = world.streams[0]!;
    const ids = world.ids(0, new Int32Array(8).fill(-1));
    const route = (partial: object, name: Parameters<typeof refused>[2]) =>
      refused(
        runtime,
        ep.enqueueRoute(handle, stream, routeCall({ tokens: 4, topkIdx: ids, ...partial })),
        name,
      ).detail;
    expect(route({ tokens: 5 }, 'ERR_INVALID_ARGUMENT')).toContain('tokens is 5');
    expect(route({ tokens: 1.5 }, 'ERR_INVALID_ARGUMENT')).toContain('tokens is 1.5');
    expect(route({ topkIdx: { ...ids, byteOffset: 4 } }, 'ERR_OUT_OF_BOUNDS')).toContain('topkIdx');
    expect(route({ topkIdx: { ...ids, entryBytes: 2 } }, 'ERR_INVALID_ARGUMENT')).toContain(
      'entries of 2 bytes',
    );
    expect(route({ topkIdx: { ...absentRange, entryBytes: 4 } }, 'ERR_INVALID_ARGUMENT')).toContain(
      'topkIdx is missing',
    );
    expect(route({ total: { ...world.allocate(0, 4), entryBytes: 8 } }, 'ERR_OUT_OF_BOUNDS')).toContain(
      'total',
    );
    route({ topkIdx: world.ids(1, new Int32Array(8)) }, 'ERR_FOREIGN_OBJECT');
    refused(
      runtime,
      ep.enqueueRoute(handle, world.streams[1]!, routeCall({ tokens: 0, topkIdx: ids })),
      'ERR_FOREIGN_OBJECT',
    );
    refused(
      runtime,
      ep.enqueueRoute(stream, stream, routeCall({ tokens: 0, topkIdx: ids })),
      'ERR_INVALID_ARGUMENT',
    );
    ok(runtime, ep.enqueueRoute(expert, stream, routeCall({ tokens: 4, topkIdx: ids })));
    const [tokens, weights, out] = [
      world.allocate(0, 256),
      world.allocate(0, 32),
      world.allocate(0, 2 * 12 * 64),
    ];
    const dispatch = (partial: object, name: Parameters<typeof refused>[2]) =>
      refused(
        runtime,
        ep.enqueueDispatch(
          expert,
          stream,
          dispatchCall(shape, { tokens, topkWeights: weights, outTokens: out, outRows: 24, ...partial }),
        ),
        name,
      ).detail;
    expect(dispatch({ outRows: 23 }, 'ERR_INVALID_ARGUMENT')).toContain('outRows');
    expect(dispatch({ pass: 'backward' }, 'ERR_INVALID_ARGUMENT')).toContain('backward');
    expect(dispatch({ rowBytes: 48 }, 'ERR_INVALID_ARGUMENT')).toContain('rowBytes');
    expect(dispatch({ quantization: 'fp8' }, 'ERR_INVALID_ARGUMENT')).toContain('multiple of 128');
    expect(
      dispatch({ quantization: 'forward', rowBytes: 24, outRowBytes: 24 }, 'ERR_INVALID_ARGUMENT'),
    ).toContain('16 bytes');
    expect(dispatch({ topkWeights: absentRange }, 'ERR_INVALID_ARGUMENT')).toContain(
      'topkWeights is missing',
    );
    expect(dispatch({ outTokens: absentRange }, 'ERR_INVALID_ARGUMENT')).toContain('outTokens is missing');
    expect(dispatch({ outWeights: weights }, 'ERR_OUT_OF_BOUNDS')).toContain('outWeights');
    expect(dispatch({ outTokens: { ...out, byteOffset: 8 }, outRows: 24 }, 'ERR_OUT_OF_BOUNDS')).toContain(
      'outTokens',
    );
    expect(dispatch({ tokens: { ...out, byteOffset: 64 } }, 'ERR_OVERLAP')).toContain('overlap');
    expect(
      dispatch({ tokens: { buffer: world.allocate(0, 512).buffer, byteOffset: 8 } }, 'ERR_INVALID_ARGUMENT'),
    ).toContain('multiple of 16');
    ok(runtime, runtime.abortRank(test.ranks[0]!, 'done'));
  });
});

it('refuses combines that a layout, a reduction or a quantization does not have', async () => {
  await inGroup(
    async (world, test) => {
      const handles = world.handles('expert-major');
      const flat = world.handles('flat');
      const next = random(9);
      const routings = world.streams.map(() => randomRouting(shape, next));
      const steps = enqueueStep(world, 'expert-major', handles, rules, next, routings);
      const flats = enqueueStep(world, 'flat', flat, rules, next, routings);
      await world.finish();
      const refuse = (handle: number, rows: number, partial: object) =>
        refused(
          test.runtime,
          world.ep.enqueueCombine(
            handle,
            world.streams[0]!,
            combineCall({
              tokens: world.allocate(0, rows * 64),
              rows,
              outTokens: world.allocate(0, 256),
              ...partial,
            }),
          ),
          'ERR_INVALID_ARGUMENT',
        ).detail;
      expect(refuse(handles[0]!, steps[0]!.outRows, { quantization: 'fp8' })).toContain('multiple of 128');
      expect(refuse(handles[0]!, steps[0]!.outRows, { quantization: 'mxfp8' })).toContain('mxfp8');
      expect(refuse(handles[0]!, steps[0]!.outRows, { pass: 'backward' })).toContain('backward');
      expect(refuse(flat[0]!, flats[0]!.outRows, {})).toContain('reduction token');
      expect(refuse(handles[0]!, steps[0]!.outRows - 1, {})).toContain('rows');
    },
    { reduction: 'token' },
  );
});

it('refuses groups and handles that are unsound, on every rank', async () => {
  await inWorld(2, {}, async (test) => {
    const of = { ...shape, ranks: 2 };
    const world = await EpWorld.open(test, of);
    const make = async (change: object) => {
      const outcomes = await Promise.all(
        test.ranks.map((rank, i) =>
          world.ep.createEpGroup(rank, { ...world.config(i), ...(i === 0 ? change : {}) }),
        ),
      );
      expect(error(outcomes[1]!)).toMatchObject({ peer: 0 });
      return error(outcomes[0]!).detail;
    };
    expect(await make({ topK: 7 })).toContain('topK is 7');
    expect(await make({ hidden: 3 })).toContain('16 bytes');
    expect(await make({ contexts: 65 })).toContain('contexts');
    expect(await make({ expertOf: Int32Array.of(0, 1, 2, 3, 4, 4) })).toContain('expert 5 is placed nowhere');
    expect(await make({ firstPhysical: Int32Array.of(0, 3) })).toContain('firstPhysical');
    expect(
      await make({ layout: { ...groupLayout(of, 4), calls: { byteOffset: 0, bytes: 2 ** 20 } } }),
    ).toContain('section');
    expect(await make({ memory: { ...world.allocate(0, 512), byteOffset: 0 } })).toContain('outside');
    const sections = handleLayout(of, world.local(0));
    const memory = world.allocate(0, sections.bytes);
    const handle = (change: object) =>
      error(
        world.ep.createEpHandle(world.groups[0]!, {
          layout: 'packed',
          alignment: 1,
          memory,
          sections,
          ...change,
        }),
      ).detail;
    expect(handle({ alignment: 3 })).toContain('power of two');
    expect(handle({ layout: 'flat', alignment: 2 })).toContain('only packed');
    expect(handle({ sections: { ...sections, slots: { ...sections.slots, bytes: 8 } } })).toContain('slots');
    expect(handle({ memory: { ...memory, byteOffset: 256 } })).toContain('outside');
    expect(handle({ memory: absentRange })).toContain('handle');
  });
});
