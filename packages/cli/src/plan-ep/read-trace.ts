// SPDX-License-Identifier: Apache-2.0
// Reads which experts the tokens of each rank went to, from JSON or safetensors.

import { type DType, NcclExtError, typedArrayFor } from '@nccl-ext/core';
import { type Checkpoint, openCheckpoint } from '@nccl-ext/m2n';
import { readJson } from '../arguments/read-json.js';

/** Ids of one rank, [B, K]; -1 is not routed. */
export interface RankTrace {
  readonly tokens: number;
  readonly ids: Int32Array;
}

export interface RoutingTrace {
  readonly topK: number;
  /** By rank. */
  readonly ranks: readonly RankTrace[];
}

/**
 * `file`: JSON `{ "topkIdx": [rank][token][k] }`, or safetensors with an integer tensor [B, K] per rank whose name ends in the number of the
 * rank, as in `topk_idx.3`.
 *
 * @throws ERR_INVALID_ARGUMENT naming what is wrong, ERR_CHECKPOINT.
 */
export async function readTrace(file: string): Promise<RoutingTrace> {
  const trace = file.endsWith('.json') ? await readJsonTrace(file) : await readTensors(file);
  if (trace.length === 0) throw refuse(`${file} has no ranks.`);
  const topK = trace.map(({ topK: own }) => own).find((own) => own > 0);
  if (topK === undefined) throw refuse(`${file} has no tokens.`);
  const odd = trace.findIndex((rank) => rank.topK !== topK && rank.tokens > 0);
  if (odd >= 0)
    throw refuse(`${file} has ${trace[odd]!.topK} ids per token on rank ${odd}, but ${topK} on others.`);
  return { topK, ranks: trace.map(({ tokens, ids }) => ({ tokens, ids })) };
}

type OneRank = RankTrace & { readonly topK: number };

async function readJsonTrace(file: string): Promise<OneRank[]> {
  const { topkIdx } = (await readJson(file, refuse)) as { topkIdx?: unknown };
  if (!Array.isArray(topkIdx)) throw refuse(`${file} must have "topkIdx": a list of tokens per rank.`);
  return topkIdx.map((tokens: unknown, rank) => {
    if (!Array.isArray(tokens)) throw refuse(`${file}: topkIdx[${rank}] must be a list of tokens.`);
    const topK = Array.isArray(tokens[0]) ? tokens[0].length : 0;
    for (const [token, ids] of (tokens as unknown[]).entries()) {
      const whole = Array.isArray(ids) && ids.length === topK && topK > 0;
      if (whole && (ids as unknown[]).every((id) => Number.isInteger(id))) continue;
      throw refuse(`${file}: topkIdx[${rank}][${token}] must be a list of ${topK || 'top-k'} integers.`);
    }
    return { tokens: tokens.length, topK, ids: idsOf(`${file}: topkIdx[${rank}]`, topK, tokens.flat()) };
  });
}

async function readTensors(file: string): Promise<OneRank[]> {
  const checkpoint = await openCheckpoint(file);
  try {
    const named = [...checkpoint.tensors.keys()].flatMap((name) => {
      const number = /(\d+)$/.exec(name)?.[1];
      return number === undefined ? [] : [{ name, rank: Number(number) }];
    });
    named.sort((a, b) => a.rank - b.rank);
    const gap = named.findIndex(({ rank }, index) => rank !== index);
    if (gap >= 0 || named.length === 0)
      throw refuse(
        `${file} must have one tensor per rank, whose name ends in its number; rank ${Math.max(gap, 0)} has none or several.`,
      );
    const ranks: OneRank[] = [];
    for (const { name } of named) ranks.push(await readTensor(checkpoint, name));
    return ranks;
  } finally {
    await checkpoint.dispose();
  }
}

const idDTypes: readonly DType[] = ['i32', 'i64', 'i16', 'u8', 'u16', 'u32'];

async function readTensor(checkpoint: Checkpoint, name: string): Promise<OneRank> {
  const { dtype, shape, begin, end } = checkpoint.tensors.get(name)!;
  if (!idDTypes.includes(dtype) || shape.length !== 2)
    throw refuse(`${name} must be integers [tokens, top-k], not ${dtype} [${shape.join(', ')}].`);
  const bytes = new Uint8Array(end - begin);
  await checkpoint.readInto(name, 0, bytes);
  const values = new (typedArrayFor(dtype))(bytes.buffer);
  return {
    tokens: shape[0]!,
    topK: shape[1]!,
    ids: idsOf(name, shape[1]!, Array.from<number | bigint, number>(values, Number)),
  };
}

/** The ids of one rank as a router may give them: in range of 32 bits, none twice in a token. */
function idsOf(place: string, topK: number, values: readonly number[]): Int32Array {
  for (const [at, id] of values.entries()) {
    const [token, k] = [Math.floor(at / topK), at % topK];
    if (id < -1 || id > 0x7fff_ffff)
      throw refuse(`${place}[${token}][${k}] is ${id}; ids are -1 or from 0 up.`);
    if (id >= 0 && values.indexOf(id, at - k) < at)
      throw refuse(`${place}[${token}] has id ${id} twice; a token goes to an expert once.`);
  }
  return Int32Array.from(values);
}

function refuse(message: string, cause?: unknown): NcclExtError {
  return new NcclExtError('ERR_INVALID_ARGUMENT', `--trace ${message}`, {
    field: '--trace',
    cause,
    help: 'JSON: { "topkIdx": [[[3, 7], [0, 2]], ...] }, by rank, token and top-k position; safetensors: an integer tensor [tokens, top-k] per rank, as in topk_idx.0.',
  });
}
