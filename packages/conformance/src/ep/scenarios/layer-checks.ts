// SPDX-License-Identifier: Apache-2.0
// Whole layers: what experts see and what a token gets back, against the definition of a mixture of experts.

import { hostExperts, type MoeLayer, moeLayer } from '@nccl-ext/ep';
import type { CheckCase } from '../../cases/case.js';
import { type CheckContext, requireThat } from '../../run/check-context.js';
import { check } from '../../scenarios/crossed-move.js';
import { epCase, uniform } from '../cases/base.js';
import type { HandleSpec } from '../cases/ep-case.js';
import { decodeRow, encodeRow, roundRow } from '../oracle/floats.js';
import { type Entry, entriesOf } from '../oracle/routing.js';
import { sumTerms } from '../oracle/sum-rows.js';
import { EpSession, type OpenStep } from '../run/ep-session.js';
import { checkEach, checkRanks } from './steps.js';

export const layerChecks: readonly CheckCase[] = [
  ...checkEach('ep-combine', 'a layer of host experts', (context, handle) =>
    layerSteps(context, handle, false),
  ),
  ...checkEach('ep-graphs', 'a layer of host experts in a graph', (context, handle) =>
    layerSteps(context, handle, true),
  ),
  check('ep-combine', 'the layouts differ by no more than their roundings', close),
];

/** What expert e makes of x. */
const slope = (expert: number): number => 0.5 + expert / 8;

const worst = { worstCase: true };

function layerCase(handle: HandleSpec) {
  return epCase('ep-combine', 'layer', {
    handles: [handle],
    routings: [{ ...uniform, tokens: [6, 5, 0, 3] }],
    values: 'usual',
    config: { hidden: 128, topK: 3 },
  });
}

async function layerSteps(context: CheckContext, handle: HandleSpec, capture: boolean): Promise<void> {
  const world = await context.shared(checkRanks);
  const session = await EpSession.open(world, layerCase(handle));
  const layers = layersOf(session);
  const first = session.openStep(0, worst);
  const graphs = capture
    ? session.allRanks.map((rank) => {
        const stream = session.stream(rank, 0);
        return stream.capture(() => enqueueLayer(session, layers, first, rank));
      })
    : undefined;
  for (const epoch of [0, 1, 2]) {
    const step = session.redraw(first, epoch, worst);
    await session.fill(step);
    for (const rank of session.allRanks) {
      if (graphs === undefined) enqueueLayer(session, layers, step, rank);
      else session.stream(rank, 0).launch(graphs[rank]!);
    }
    await session.synchronize();
    for (const rank of session.allRanks) requireEqual(step, rank, await resultOf(session, step, rank));
  }
  for (const graph of graphs ?? []) await graph.dispose();
  await session.dispose();
}

function layersOf(session: EpSession): readonly MoeLayer[] {
  return session.handles.map(([handle]) =>
    moeLayer(
      handle!,
      hostExperts(({ expert, rows }) => rows.map((x) => x * slope(expert))),
    ),
  );
}

function enqueueLayer(session: EpSession, layers: readonly MoeLayer[], step: OpenStep, rank: number): void {
  const memory = step.memories[rank]!;
  const some = step.plan.inputs[rank]!.routing.tokens > 0;
  const get = (name: string): never => (some ? memory.get(name) : undefined) as never;
  layers[rank]!.enqueue(session.stream(rank, 0), {
    tokens: get('tokens'),
    topkIdx: get('topkIdx'),
    weights: get('weights'),
    out: get('result.tokens'),
  });
}

async function resultOf(session: EpSession, step: OpenStep, rank: number): Promise<Uint8Array> {
  const { buffer, byteOffset, shape } = step.memories[rank]!.get('result.tokens')!;
  const bytes = new Uint8Array(shape[0]! * shape[1]! * 2);
  const stream = session.stream(rank, 0);
  stream.download(bytes, buffer, byteOffset);
  await stream.synchronize();
  return bytes;
}

/** Experts compute in f32 and round what combine reads to the dtype; where they weight it, after that. */
function requireEqual(step: OpenStep, source: number, seen: Uint8Array): void {
  const expected = expectedResult(step, source);
  const at = seen.findIndex((byte, index) => byte !== expected[index]);
  requireThat(at < 0, `step ${step.plan.epoch}, rank ${source}: byte ${at} of the result differs`);
}

function expectedResult({ plan }: OpenStep, source: number): Uint8Array {
  const { rules, inputs } = plan;
  const { sums, placement, topK } = rules;
  const { layout } = rules.rows;
  const { tokens, routing } = inputs[source]!;
  const entries = entriesOf(
    placement,
    topK,
    inputs.map((input) => input.routing),
  ).filter((entry) => entry.source === source);
  const rowBytes = sums.hidden * 2;
  const result = new Uint8Array(routing.tokens * rowBytes);
  for (let token = 0; token < routing.tokens; token++) {
    const x = decodeRow(sums.dtype, tokens.subarray(token * rowBytes, (token + 1) * rowBytes));
    const own = entries.filter((entry) => entry.token === token);
    const made = ({ id }: Entry): Float32Array => x.map((value) => Math.fround(value * slope(id)));
    const weighted = (entry: Entry): Float32Array =>
      made(entry).map((value) => Math.fround(Math.fround(entry.weight) * value));
    const perRank = [...new Set(own.map(({ rank }) => rank))].map((rank) =>
      own.filter((e) => e.rank === rank),
    );
    const terms =
      layout === 'expert-major'
        ? own.map((entry) => ({
            rank: entry.rank,
            weight: entry.weight,
            row: roundRow(sums.dtype, made(entry)),
          }))
        : layout === 'packed'
          ? own.map((entry) => ({
              rank: entry.rank,
              weight: undefined,
              row: roundRow(sums.dtype, weighted(entry)),
            }))
          : perRank.map((list) => ({
              rank: list[0]!.rank,
              weight: undefined,
              row: roundRow(
                sums.dtype,
                sumTerms(
                  list.map((entry) => ({ rank: 0, weight: undefined, row: weighted(entry) })),
                  { ...sums, reduction: 'token' },
                ),
              ),
            }));
    result.set(encodeRow(sums.dtype, sumTerms(terms, sums)), token * rowBytes);
  }
  return result;
}

/** bf16 has 8 bits: three roundings of a term move it by less than 2^-7 of the largest of them. */
async function close(context: CheckContext): Promise<void> {
  const world = await context.shared(checkRanks);
  const results: Float32Array[] = [];
  for (const layout of ['expert-major', 'rank-major', 'flat', 'packed'] as const) {
    const session = await EpSession.open(world, layerCase({ layout }));
    const layers = layersOf(session);
    const step = session.openStep(0);
    await session.fill(step);
    for (const rank of session.allRanks) enqueueLayer(session, layers, step, rank);
    await session.synchronize();
    results.push(decodeRow('bf16', await resultOf(session, step, 0)));
    await session.dispose();
  }
  const [first, ...others] = results;
  for (const other of others) {
    for (const [i, value] of other.entries()) {
      // At most 3 terms of magnitude up to 16 x 1.375.
      const bound = 3 * 22 * 2 ** -7;
      requireThat(Math.abs(value - first![i]!) <= bound, `element ${i} is ${value} and ${first![i]}`);
    }
  }
}
