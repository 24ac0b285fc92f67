// SPDX-License-Identifier: Apache-2.0
// What `nccl-ext plan ep` is asked: a group, a layout, a routing, a topology.

import { setImmediate } from 'node:timers/promises';
import { NcclExtError, singleDomain, type Topology, topologyFor } from '@nccl-ext/core';
import { type EpLayout, type EpQuantization, epLayouts } from '@nccl-ext/core/contract';
import { type EpConfig, epMemory } from '@nccl-ext/ep';
import type { Arguments } from '../arguments/arguments.js';
import { readDType } from '../arguments/dtype-argument.js';
import { readJson } from '../arguments/read-json.js';
import type { Session } from '../command.js';
import { type RoutingKind, routingByRank, type SyntheticRouting } from '../ep/synthetic-routing.js';
import { type RankTrace, readTrace } from './read-trace.js';

export interface EpPlanInput {
  readonly config: EpConfig;
  readonly ranks: number;
  readonly layout: EpLayout;
  readonly alignment: number;
  readonly quantization: EpQuantization;
  readonly topology: Topology;
  /** Ids [B, K] by rank. */
  readonly topkIdx: readonly Int32Array[];
  /** Where the routing comes from, in words. */
  readonly routing: string;
}

const quantizations = ['none', 'fp8', 'fp8-pow2', 'mxfp8'] as const;

/** @throws ERR_INVALID_ARGUMENT naming the option, ERR_CHECKPOINT, ERR_TOPOLOGY. */
export async function readEpInput({ arguments: args, signal }: Session): Promise<EpPlanInput> {
  const base = await readConfig(args);
  const asked = args.integer('ranks', 1, 4096);
  const { topkIdx, topK, maxTokens, routing } = await readRouting(args, signal, base, asked);
  const ranks = topkIdx.length;
  if (asked !== undefined && asked !== ranks)
    throw wrong('--ranks', `is ${asked}, but the trace has ${ranks} ranks`);
  const layout = args.oneOf('layout', epLayouts) ?? 'flat';
  if (layout !== 'packed') args.refuse(['alignment'], `is for --layout packed; this is ${layout}`);
  const config = {
    ...base,
    topK,
    maxTokensPerRank: Math.max(1, base.maxTokensPerRank, maxTokens),
  } as EpConfig;
  return {
    config,
    ranks,
    layout,
    alignment: args.integer('alignment', 1, 2 ** 16) ?? 1,
    quantization: args.oneOf('quantization', quantizations) ?? 'none',
    topology: await readTopology(args.text('topology'), ranks),
    topkIdx,
    routing,
  };
}

type BaseConfig = Omit<EpConfig, 'topK' | 'memory'> & { readonly topK: number | undefined };

async function readConfig(args: Arguments): Promise<BaseConfig> {
  const file = args.text('config');
  const given: Partial<EpConfig> = file === undefined ? {} : await readJson(file, refuseConfig);
  const budget = args.integer('budget', 1, 2 ** 31 - 1);
  const dtype = readDType(args);
  return {
    experts: 256,
    hidden: 7168,
    dtype: 'bf16',
    maxTokensPerRank: 1,
    ...given,
    topK: args.integer('top-k', 1, 32) ?? given.topK,
    ...(args.has('experts') ? { experts: args.integer('experts', 1, 2 ** 20)! } : {}),
    ...(args.has('hidden') ? { hidden: args.integer('hidden', 1, 2 ** 24)! } : {}),
    ...(dtype === undefined ? {} : { dtype }),
    ...(budget === undefined ? {} : { receiveBudget: budget }),
  };
}

/** Fields of a configuration that an option says instead. */
const optionOfField: Readonly<Record<string, string>> = {
  experts: 'experts',
  topK: 'top-k',
  hidden: 'hidden',
  dtype: 'dtype',
  receiveBudget: 'budget',
};

/** Refuses what the file of the configuration says wrong, before it is used; what options say wrong is refused where they are. */
function requireRightFile(args: Arguments, config: BaseConfig, ranks: number, topK: number): void {
  const file = args.text('config');
  if (file === undefined) return;
  try {
    epMemory({ ...config, topK: config.topK ?? topK } as EpConfig, ranks);
  } catch (error) {
    if (!NcclExtError.is(error)) throw error;
    const option = optionOfField[/^\w*/.exec(error.field ?? '')![0]];
    if (option === undefined || !args.has(option)) throw refuseConfig(`${file}: ${error.message}`, error);
  }
}

interface Routing {
  readonly topkIdx: readonly Int32Array[];
  readonly topK: number;
  readonly maxTokens: number;
  readonly routing: string;
}

const defaultTopK = 8;
const defaultRanks = 8;
const defaultTokens = 128;

async function readRouting(
  args: Arguments,
  signal: AbortSignal,
  config: BaseConfig,
  ranks = defaultRanks,
): Promise<Routing> {
  const file = args.text('trace');
  if (file !== undefined) {
    args.refuse(['routing', 'seed', 'skew', 'tokens'], 'is for made-up routings; --trace has its own');
    const trace = await readTrace(file);
    requireRightFile(args, config, trace.ranks.length, trace.topK);
    if (config.topK !== undefined && config.topK !== trace.topK) {
      const rest = `is ${config.topK}, but the trace has ${trace.topK} ids per token`;
      throw args.has('top-k')
        ? wrong('--top-k', rest)
        : refuseConfig(`${args.text('config')}: topK ${rest}.`);
    }
    requireExperts(file, trace.ranks, trace.topK, expertsOf(config));
    const maxTokens = Math.max(...trace.ranks.map(({ tokens }) => tokens));
    return { topkIdx: trace.ranks.map(({ ids }) => ids), topK: trace.topK, maxTokens, routing: file };
  }
  const kind = args.oneOf<RoutingKind>('routing', ['uniform', 'zipf']) ?? 'uniform';
  if (kind !== 'zipf') args.refuse(['skew'], `is for --routing zipf; this is ${kind}`);
  const seed = args.integer('seed', 0, 2 ** 32 - 1) ?? 1;
  const tokens = args.integer('tokens', 0, 2 ** 20) ?? defaultTokens;
  const skew = readSkew(args);
  requireRightFile(args, config, ranks, 1);
  const experts = expertsOf(config);
  const topK = config.topK ?? Math.min(defaultTopK, experts);
  if (topK > experts) throw wrong('--top-k', `is ${topK}, but there are ${experts} experts`);
  return {
    topkIdx: await makeUp({ kind, ranks, tokens, topK, experts, seed, skew }, signal),
    topK,
    maxTokens: tokens,
    routing: kind === 'zipf' ? `zipf, skew ${skew}, seed ${seed}` : `uniform, seed ${seed}`,
  };
}

/** Signals are heard between ranks. */
async function makeUp(routing: SyntheticRouting, signal: AbortSignal): Promise<Int32Array[]> {
  const ranks: Int32Array[] = [];
  for (const ids of routingByRank(routing)) {
    ranks.push(ids);
    await setImmediate();
    signal.throwIfAborted();
  }
  return ranks;
}

function expertsOf({ experts }: BaseConfig): number {
  return typeof experts === 'number' ? experts : experts.count;
}

function requireExperts(file: string, ranks: readonly RankTrace[], topK: number, experts: number): void {
  for (const [rank, { ids }] of ranks.entries()) {
    const at = ids.findIndex((id) => id >= experts);
    if (at < 0) continue;
    const place = `token ${Math.floor(at / topK)} of rank ${rank}`;
    throw new NcclExtError(
      'ERR_INVALID_ARGUMENT',
      `--trace ${file}: ${place} goes to expert ${ids[at]}, but there are ${experts} experts.`,
      { help: 'Give their number with --experts, or a --config that has it.', field: '--trace' },
    );
  }
}

function readSkew(args: Arguments): number {
  const text = args.text('skew');
  if (text === undefined) return 1;
  const skew = Number(text);
  if (skew >= 0 && skew <= 10) return skew;
  throw wrong('--skew', `is ${JSON.stringify(text)}; it must be a number from 0 to 10`);
}

async function readTopology(source: string | undefined, ranks: number): Promise<Topology> {
  if (source === undefined) return singleDomain(ranks);
  if (!source.endsWith('.json')) return topologyFor(source, ranks);
  const refuse = (message: string, cause: unknown): NcclExtError =>
    new NcclExtError('ERR_TOPOLOGY', `--topology ${message}`, { field: '--topology', cause });
  return topologyFor(await readJson(source, refuse), ranks);
}

function refuseConfig(message: string, cause?: unknown): NcclExtError {
  return new NcclExtError('ERR_INVALID_ARGUMENT', `--config ${message}`, { field: '--config', cause });
}

function wrong(field: string, rest: string): NcclExtError {
  return new NcclExtError('ERR_INVALID_ARGUMENT', `${field} ${rest}.`, { field });
}
