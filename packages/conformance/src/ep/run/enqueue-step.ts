// SPDX-License-Identifier: Apache-2.0
// Puts the operations of one step on the stream of one rank, without a wait, so that a graph can record them.

import type { Stream } from '@nccl-ext/core';
import type { EpHandle, EpTensor } from '@nccl-ext/ep';
import type { EpCase } from '../cases/ep-case.js';
import type { StepMemory } from './step-memory.js';

/** The calls of a handle as data gives them: what a layout takes is decided when the case runs, not by types. */
interface LooseHandle {
  route(topkIdx: EpTensor | undefined, options: object): void;
  dispatch(tokens: EpTensor | undefined, options: object): void;
  combine(rows: EpTensor, options: object): void;
  complete(options: object): void;
}

/** A handle without the types of its layout. */
export function loose(handle: EpHandle): LooseHandle {
  return handle as unknown as LooseHandle;
}

/** Where a step's operations go. */
export interface StepTarget {
  readonly handle: EpHandle;
  readonly stream: Stream;
  readonly memory: StepMemory;
  /** A rank without tokens passes no tensors instead of empty ones. */
  readonly absent: boolean;
}

export function enqueueRoute({ overflow }: EpCase['config'], target: StepTarget): void {
  const { handle, stream, memory } = target;
  const highThroughput = handle.layout === 'flat' || handle.layout === 'packed';
  const counts = group(memory, 'counts');
  loose(handle).route(input(target, 'topkIdx'), {
    stream,
    ...(overflow === 'drop-by-weight' && highThroughput ? { weights: input(target, 'weights') } : {}),
    ...(Object.keys(counts).length === 0 ? {} : { counts }),
  });
}

export function enqueueDispatch(epCase: EpCase, target: StepTarget): void {
  const { quantization, renormalize, ids, sendOnly } = epCase;
  const { handle, stream, memory } = target;
  const named = handle.layout === 'flat' || handle.layout === 'rank-major';
  loose(handle).dispatch(input(target, 'tokens'), {
    stream,
    weights: input(target, 'weights'),
    ...(memory.get('scales') === undefined ? {} : { scales: input(target, 'scales') }),
    ...(quantization === undefined ? {} : { quantization }),
    ...(renormalize === undefined ? {} : { renormalize }),
    ...(ids === undefined || !named ? {} : { ids }),
    ...(sendOnly === true ? { sendOnly } : {}),
    out: group(memory, 'out'),
  });
  if (sendOnly === true) loose(handle).complete({ stream });
}

/** A dispatch of low latency whose `complete` is left to the caller. */
export function sendDispatch(target: StepTarget): void {
  const { handle, stream, memory } = target;
  loose(handle).dispatch(input(target, 'tokens'), {
    stream,
    weights: input(target, 'weights'),
    sendOnly: true,
    out: group(memory, 'out'),
  });
}

export function enqueueCombine({ combineQuantization, sendOnly }: EpCase, target: StepTarget): void {
  const { handle, stream, memory } = target;
  loose(handle).combine(memory.get('rows')!, {
    stream,
    ...(combineQuantization === undefined ? {} : { quantization: combineQuantization }),
    ...(sendOnly === true ? { sendOnly } : {}),
    out: { tokens: input(target, 'result.tokens') },
  });
  if (sendOnly === true) loose(handle).complete({ stream });
}

/** The backward pass of combine, then that of dispatch. */
export function enqueueBackward(target: StepTarget): void {
  const { handle, stream, memory } = target;
  const pass = 'backward';
  loose(handle).dispatch(input(target, 'gradients'), {
    stream,
    pass,
    out: { tokens: memory.get('scattered.tokens')! },
  });
  loose(handle).combine(memory.get('gradientRows')!, {
    stream,
    pass,
    weights: memory.get('gradientWeights'),
    out: {
      tokens: input(target, 'gathered.tokens'),
      topkWeights: input(target, 'gathered.topkWeights'),
    },
  });
}

/** All of them, in order. */
export function enqueueStep(epCase: EpCase, target: StepTarget): void {
  enqueueRoute(epCase.config, target);
  enqueueDispatch(epCase, target);
  enqueueCombine(epCase, target);
  if (epCase.backward === true) enqueueBackward(target);
}

/** A tensor with B rows. */
function input({ memory, absent }: StepTarget, name: string): EpTensor | undefined {
  const tensor = memory.get(name);
  return absent && tensor?.shape[0] === 0 ? undefined : tensor;
}

const fields = [
  'tokens',
  'scales',
  'topkWeights',
  'topkIdx',
  'expertCounts',
  'expertOffsets',
  'sourceCounts',
  'total',
  'demand',
];

function group(memory: StepMemory, prefix: string): Record<string, EpTensor> {
  return Object.fromEntries(
    fields.flatMap((field) => {
      const tensor = memory.get(`${prefix}.${field}`);
      return tensor === undefined ? [] : [[field, tensor]];
    }),
  );
}
