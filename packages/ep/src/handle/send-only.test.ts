// SPDX-License-Identifier: Apache-2.0
// Sends and completes apart: several handles in flight, contexts that run out, and graphs that hold theirs.

import { type Communicator, localWorld, type World } from '@nccl-ext/core';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { createEpGroup } from '../group/create-ep-group.js';
import type { EpGroup } from '../group/ep-group.js';
import { place, poisoned, valuesOf } from '../oracle/on-device.test-util.js';

const [topK, hidden] = [2, 8];
const config = { experts: 4, topK, hidden, dtype: 'f32', maxTokensPerRank: 1, contexts: 2 } as const;

let world: World;
beforeEach(async () => {
  world = await localWorld({ ranks: 2, backend: 'embedded', timeoutMs: 3000 });
});
afterEach(() => world.dispose());

/** A handle whose token is `value`, sent to experts 0 and 3, that is to both ranks. */
function open(comm: Communicator, group: EpGroup, value: number) {
  const handle = group.createHandle({ layout: 'expert-major' });
  const stream = comm.createStream();
  const tokens = place(comm, 'f32', [1, hidden], Array(hidden).fill(value));
  const weights = place(comm, 'f32', [1, topK], [0.25, 0.5]);
  const rows = poisoned(comm, 'f32', [2, 2, hidden]);
  const y = poisoned(comm, 'f32', [1, hidden]);
  const out = { tokens: rows, expertCounts: poisoned(comm, 'i32', [2]) };
  const topkIdx = place(comm, 'i32', [1, topK], [0, 3]);
  return {
    handle,
    stream,
    y,
    route: () => handle.route(topkIdx, { stream }),
    dispatch: (sendOnly: boolean) => handle.dispatch(tokens, { stream, weights, sendOnly, out }),
    combine: (sendOnly: boolean) => handle.combine(rows, { stream, sendOnly, out: { tokens: y } }),
    complete: () => handle.complete({ stream }),
  };
}

it('two handles have sends open at a time, and complete in any order', async () => {
  await world.run(async (comm) => {
    const group = await createEpGroup(comm, config);
    const [a, b] = [open(comm, group, 4), open(comm, group, 8)];
    for (const part of [a, b]) {
      part.route();
      part.dispatch(true);
    }
    for (const part of [b, a]) part.complete();
    for (const part of [a, b]) part.combine(true);
    for (const part of [b, a]) part.complete();
    await a.stream.synchronize();
    await b.stream.synchronize();
    expect(valuesOf(a.y)).toEqual(Array(hidden).fill(3));
    expect(valuesOf(b.y)).toEqual(Array(hidden).fill(6));
  });
});

it('no context is free for a third one, and nothing was enqueued', async () => {
  await world.run(async (comm) => {
    const group = await createEpGroup(comm, config);
    const parts = [1, 2, 3].map((value) => open(comm, group, value));
    for (const part of parts) part.route();
    parts[0]!.dispatch(true);
    parts[1]!.dispatch(true);
    expect(() => parts[2]!.dispatch(true)).toThrow(expect.objectContaining({ code: 'ERR_CONTEXTS' }));
    parts[0]!.complete();
    parts[2]!.dispatch(true);
    for (const part of [parts[1]!, parts[2]!]) part.complete();
    for (const part of parts) part.combine(false);
    for (const part of parts) await part.stream.synchronize();
    expect(parts.map(({ y }) => valuesOf(y)[0])).toEqual([0.75, 1.5, 2.25]);
  });
});

it('graphs hold contexts until they are disposed', async () => {
  await world.run(async (comm) => {
    const group = await createEpGroup(comm, config);
    const part = open(comm, group, 4);
    const record = () =>
      part.stream.capture(() => {
        part.route();
        part.dispatch(false);
        part.combine(false);
      });
    const graph = record();
    const other = record();
    expect(record).toThrow(expect.objectContaining({ code: 'ERR_CONTEXTS' }));
    for (let i = 0; i < 3; i++) part.stream.launch(graph);
    await part.stream.synchronize();
    expect(valuesOf(part.y)).toEqual(Array(hidden).fill(3));
    await graph.dispose();
    const again = record();
    await Promise.all([again.dispose(), other.dispose()]);
  });
});
