// SPDX-License-Identifier: Apache-2.0
// The device memory of one step on one rank: every input and output by name, each poisoned and guarded.

import { type Communicator, type DType, dtypeBytes, type Stream } from '@nccl-ext/core';
import type { EpTensor } from '@nccl-ext/ep';
import type { EpCase, HandleSpec } from '../cases/ep-case.js';
import { expectCounts, expectDispatch, expectScatter, type RankInputs } from '../oracle/expected-step.js';
import { expectCombine, expectGather } from '../oracle/expected-sums.js';
import { rowFormatOf } from './group-facts.js';
import { GuardedTensor } from './guarded-tensor.js';
import type { StepPlan } from './step-plan.js';

export class StepMemory {
  readonly #tensors = new Map<string, GuardedTensor>();
  readonly #rank: number;
  #reads: ReadonlyMap<string, Uint8Array> = new Map();

  constructor(communicator: Communicator, epCase: EpCase, handle: HandleSpec, plan: StepPlan) {
    this.#rank = communicator.rank;
    const tokens = plan.inputs[this.#rank]!.routing.tokens;
    const local = plan.received[this.#rank]!.perExpert.length;
    const shapes = shapesOf(epCase, handle, { tokens, local, rows: plan.outRows[this.#rank]! });
    // Other steps leave other bytes behind.
    const guard = 0xde ^ (plan.epoch & 0x1f);
    for (const [name, [dtype, shape]] of Object.entries(shapes))
      this.#tensors.set(name, new GuardedTensor(communicator, name, dtype, shape, guard));
  }

  /** The tensor of this name, if the step has it. */
  get(name: string): EpTensor | undefined {
    return this.#tensors.get(name)?.tensor;
  }

  enqueueFill(stream: Stream, plan: StepPlan): void {
    const contents = contentsOf(plan.inputs[this.#rank]!, this.#tensors.get('topkIdx')!.tensor.dtype);
    for (const [name, guarded] of this.#tensors) guarded.enqueueFill(stream, contents[name]);
  }

  /** Reads every output. */
  enqueueReads(stream: Stream): void {
    const outputs = [...this.#tensors].filter(([name]) => isOutput(name));
    this.#reads = new Map(outputs.map(([name, guarded]) => [name, guarded.enqueueRead(stream)]));
  }

  /** What was read and is not as the oracle says, as a sentence, or undefined. */
  difference(plan: StepPlan): string | undefined {
    const images = new Map([...this.#reads.keys()].map((name) => [name, this.#tensors.get(name)!.image()]));
    expectAll(plan, this.#rank, images);
    for (const [name, read] of this.#reads) {
      const difference = this.#tensors.get(name)!.difference(read, images.get(name)!);
      if (difference !== undefined) return `step ${plan.epoch}, rank ${this.#rank}: ${difference}`;
    }
    return undefined;
  }

  /** What was read last, output by output. */
  lastRead(): readonly Uint8Array[] {
    return [...this.#reads.values()];
  }

  async dispose(): Promise<void> {
    for (const guarded of this.#tensors.values()) await guarded.dispose();
  }
}

const outputGroups = ['counts.', 'out.', 'result.', 'scattered.', 'gathered.'];

function isOutput(name: string): boolean {
  return outputGroups.some((group) => name.startsWith(group));
}

type Shapes = Record<string, readonly [DType, readonly number[]]>;

interface Extents {
  readonly tokens: number;
  readonly local: number;
  readonly rows: number;
}

function shapesOf(epCase: EpCase, { layout }: HandleSpec, { tokens, local, rows }: Extents): Shapes {
  const { config, ranks, index = 'i32', bare = false, backward = false, quantization } = epCase;
  const { topK, hidden, dtype, maxTokensPerRank } = config;
  const { tokens: inDType, rows: outDType, extent, scale, scalesPerRow } = rowFormatOf(epCase);
  const lead =
    layout === 'expert-major'
      ? [local, ranks * maxTokensPerRank]
      : layout === 'rank-major'
        ? [ranks, maxTokensPerRank]
        : [rows];
  const highThroughput = layout === 'flat' || layout === 'packed';
  const shapes: Shapes = {
    topkIdx: [index, [tokens, topK]],
    weights: ['f32', [tokens, topK]],
    tokens: [inDType, [tokens, extent]],
    'out.tokens': [outDType, [...lead, extent]],
    rows: [dtype, [...lead, hidden]],
    'result.tokens': [dtype, [tokens, hidden]],
  };
  if (scale !== undefined) {
    if (quantization === 'forward') shapes.scales = [scale, [tokens, scalesPerRow]];
    shapes['out.scales'] = [scale, [...lead, scalesPerRow]];
  }
  if (layout === 'expert-major') shapes['out.expertCounts'] = [index, [local]];
  if (!highThroughput && !bare) shapes['out.sourceCounts'] = [index, [ranks]];
  if (layout === 'rank-major' || (layout === 'flat' && !bare)) {
    shapes['out.topkWeights'] = ['f32', [...lead, topK]];
    shapes['out.topkIdx'] = [index, [...lead, topK]];
  }
  if (layout === 'packed' && !bare) {
    shapes['out.topkWeights'] = ['f32', lead];
    shapes['counts.expertOffsets'] = [index, [local]];
  }
  if (highThroughput && !bare) {
    shapes['counts.expertCounts'] = [index, [local]];
    shapes['counts.sourceCounts'] = [index, [ranks]];
    shapes['counts.total'] = [index, [1]];
    shapes['counts.demand'] = [index, [1]];
  }
  if (!backward) return shapes;
  return {
    ...shapes,
    gradients: [dtype, [tokens, hidden]],
    gradientRows: [dtype, [rows, hidden]],
    gradientWeights: ['f32', layout === 'packed' ? [rows] : [rows, topK]],
    'scattered.tokens': [dtype, [rows, hidden]],
    'gathered.tokens': [dtype, [tokens, hidden]],
    'gathered.topkWeights': ['f32', [tokens, topK]],
  };
}

function contentsOf(inputs: RankInputs, index: DType): Record<string, Uint8Array> {
  const { routing, tokens, scales, rows, gradients, gradientRows, gradientWeights } = inputs;
  const ids = index === 'i64' ? BigInt64Array.from(routing.ids, BigInt) : routing.ids;
  return {
    topkIdx: new Uint8Array(ids.buffer as ArrayBuffer, ids.byteOffset, ids.length * dtypeBytes(index)),
    weights: new Uint8Array(routing.weights.buffer),
    tokens,
    scales,
    rows,
    gradients,
    gradientRows,
    gradientWeights: new Uint8Array(gradientWeights.buffer),
  };
}

function expectAll(plan: StepPlan, rank: number, images: ReadonlyMap<string, Uint8Array>): void {
  const { rules, inputs, received } = plan;
  const own = received[rank]!;
  expectCounts(rules, own, images, 'counts');
  expectCounts(rules, own, images, 'out');
  expectDispatch(rules, own, inputs, images);
  expectCombine(rules, received, inputs, rank, images.get('result.tokens')!);
  const scattered = images.get('scattered.tokens');
  if (scattered === undefined) return;
  expectScatter(rules, own, inputs, scattered);
  const gathered = {
    tokens: images.get('gathered.tokens')!,
    weights: images.get('gathered.topkWeights')!,
  };
  expectGather(rules, received, inputs, rank, gathered);
}
