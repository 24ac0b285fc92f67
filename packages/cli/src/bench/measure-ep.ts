// SPDX-License-Identifier: Apache-2.0
// Times dispatch and combine of one layout on all ranks, in turns with plain copies, and steps of both in a captured graph.

import type { Communicator, Stream, World } from '@nccl-ext/core';
import {
  allocateTensor,
  createEpGroup,
  type EpHandle,
  type EpTensor,
  tensorBytes,
  viewTensor,
} from '@nccl-ext/ep';
import type { CopyThreads } from './copy-ceiling.js';
import { copyBytesOf, type EpWork, passBytes } from './ep-work.js';
import { fillRandom } from './fill-random.js';
import type { PairedTime } from './measure-row.js';
import { stepsPerGraph } from './measure-step.js';
import { median, repeatTimed } from './samples.js';
import { timeAll } from './time-all.js';
import { withGraphs } from './with-graphs.js';

/** `bytes` by the formula, and what is read and written. */
export interface EpRow extends PairedTime {
  readonly layout: EpWork['layout'];
  readonly operation: 'dispatch' | 'combine';
  readonly tokens: number;
  readonly movedBytes: number;
}

interface RankState {
  readonly stream: Stream;
  readonly route: () => void;
  readonly dispatch: () => void;
  readonly combine: () => void;
}

/** In high throughput a dispatch includes its route: nothing that a step needs is left out. */
export async function measureEp(
  world: World,
  work: EpWork,
  threads: CopyThreads,
  signal: AbortSignal,
): Promise<readonly EpRow[]> {
  return withLayer(world, work, async (states) => {
    const highThroughput = work.layout === 'flat' || work.layout === 'packed';
    const bytes = passBytes(work);
    const rows: EpRow[] = [];
    for (const operation of ['dispatch', 'combine'] as const) {
      const enqueue = (state: RankState): void => {
        if (operation === 'dispatch' && highThroughput) state.route();
        state[operation]();
      };
      const [samples, copies] = (await repeatTimed(
        [() => timeAll(states, enqueue), () => threads.copy()],
        signal,
      )) as [number[], number[]];
      rows.push({
        layout: work.layout,
        operation,
        tokens: work.tokens,
        ms: median(samples),
        samples: samples.length,
        bytes: bytes[operation].formulaBytes,
        movedBytes: bytes[operation].readBytes + bytes[operation].writtenBytes,
        copyBytes: copyBytesOf(bytes[operation]),
        ceilingMs: median(copies),
        ceilingBytes: threads.bytes,
      });
    }
    return rows;
  });
}

/** Milliseconds of a dispatch and a combine, in a captured graph of 100 steps, and enqueued one by one. */
export async function measureEpStep(
  world: World,
  work: EpWork,
  signal: AbortSignal,
): Promise<{ readonly capturedMs: number; readonly uncapturedMs: number }> {
  return withLayer(world, work, async (states) => {
    const enqueueSteps = ({ dispatch, combine }: RankState): void => {
      for (let step = 0; step < stepsPerGraph; step++) {
        dispatch();
        combine();
      }
    };
    const times = await withGraphs(states, enqueueSteps, (launch) =>
      repeatTimed([() => timeAll(states, launch), () => timeAll(states, enqueueSteps)], signal),
    );
    const [capturedMs, uncapturedMs] = times.map((samples) => median(samples) / stepsPerGraph) as [
      number,
      number,
    ];
    return { capturedMs, uncapturedMs };
  });
}

async function withLayer<T>(
  world: World,
  work: EpWork,
  body: (states: readonly RankState[]) => Promise<T>,
): Promise<T> {
  const owned: { dispose(): Promise<void> }[] = [];
  try {
    const states = await world.run((communicator) => openRank(communicator, work, owned));
    return await body(states);
  } finally {
    // Groups first: they use the tensors.
    for (const resource of owned.reverse()) await resource.dispose();
  }
}

async function openRank(
  communicator: Communicator,
  work: EpWork,
  owned: { dispose(): Promise<void> }[],
): Promise<RankState> {
  const { layout, tokens: batch, topK, experts, hidden, dtype, topkIdx } = work;
  const own = <T extends EpTensor>(tensor: T): T => {
    owned.push(tensor.buffer);
    return tensor;
  };
  const topk = own(allocateTensor(communicator, 'i32', [batch, topK]));
  viewTensor(topk).set(topkIdx[communicator.rank]!);
  const weights = own(allocateTensor(communicator, 'f32', [batch, topK]));
  viewTensor(weights).fill(1 / topK);
  const tokens = own(allocateTensor(communicator, dtype, [batch, hidden]));
  randomise(tokens);
  const out = own(allocateTensor(communicator, dtype, [batch, hidden]));
  const config = { experts, topK, hidden, dtype, maxTokensPerRank: batch };
  const group = await createEpGroup(communicator, config);
  const stream = communicator.createStream();
  const handle = group.createHandle({ layout }) as unknown as Loose;
  handle.route(topk, { stream });
  const highThroughput = layout === 'flat' || layout === 'packed';
  const rows = highThroughput ? (await handle.counts()).rows : undefined;
  const shapes = Object.entries(handle.outputShapes('dispatch', { rows }));
  const outputs = Object.fromEntries(
    shapes.map(([name, { dtype: kind, shape }]) => [name, own(allocateTensor(communicator, kind, shape))]),
  );
  owned.push(stream, group);
  const state: RankState = {
    stream,
    route: () => handle.route(topk, { stream }),
    dispatch: () => handle.dispatch(tokens, { stream, weights, out: outputs }),
    // What was dispatched is combined as it is: experts are none of this.
    combine: () => handle.combine(outputs.tokens!, { stream, out: { tokens: out } }),
  };
  state.dispatch();
  await stream.synchronize();
  return state;
}

/** The calls of a handle whose layout is a value. */
interface Loose extends Pick<EpHandle, 'counts'> {
  route(topkIdx: EpTensor, options: object): void;
  dispatch(tokens: EpTensor, options: object): void;
  combine(rows: EpTensor, options: object): void;
  outputShapes(
    operation: 'dispatch',
    options: object,
  ): Record<string, { readonly dtype: EpTensor['dtype']; readonly shape: readonly number[] }>;
}

/** Random numbers without NaNs: bits of random floats with small exponents. */
function randomise(tensor: EpTensor): void {
  const { buffer, dtype } = tensor;
  fillRandom((at, length) => buffer.view('u8', at, length), tensorBytes(tensor));
  const step = dtype === 'f32' ? 4 : 2;
  const bytes = buffer.view('u8');
  for (let at = step - 1; at < bytes.length; at += step) bytes[at] = (bytes[at]! & 0x80) | 0x3e;
}
