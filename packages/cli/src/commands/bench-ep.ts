// SPDX-License-Identifier: Apache-2.0
// `nccl-ext bench ep`: dispatch and combine against the copy ceiling that the same threads reach in the same run.

import { availableParallelism } from 'node:os';
import { localWorld, NcclExtError } from '@nccl-ext/core';
import { type EpLayout, epLayouts } from '@nccl-ext/core/contract';
import { epMemory } from '@nccl-ext/ep';
import { type Arguments, wrongValue } from '../arguments/arguments.js';
import { backendArguments } from '../arguments/backend-arguments.js';
import { dtypeArgument, readDType } from '../arguments/dtype-argument.js';
import { requireNoLauncher } from '../arguments/launched.js';
import { CopyThreads } from '../bench/copy-ceiling.js';
import { readEpBackend } from '../bench/ep-backend.js';
import { type EpBenchResult, epBenchJson, epBenchText } from '../bench/ep-report.js';
import { type EpSizes, epWork } from '../bench/ep-work.js';
import { machineFacts } from '../bench/machine.js';
import { type EpRow, measureEp, measureEpStep } from '../bench/measure-ep.js';
import { median, repeatTimed } from '../bench/samples.js';
import { type Command, defineLeaf, type Outcome, type Session } from '../command.js';

const copyBytes = 256 * 2 ** 20;
/** Tokens per rank in each mode, unless --tokens says otherwise. */
const defaultTokens = { lowLatency: 128, highThroughput: 512 };
const defaultLayouts: readonly EpLayout[] = ['expert-major', 'flat', 'packed'];

export const benchEpCommand: Command = defineLeaf({
  meta: { name: 'ep', description: 'Measure dispatch and combine against the copy ceiling of this machine' },
  usage: ['[options]'],
  args: {
    ranks: { type: 'string', valueHint: 'N', description: 'Ranks; default 4' },
    tokens: {
      type: 'string',
      valueHint: 'N',
      description: 'Tokens per rank; default 128 in low latency and 512 in high throughput',
    },
    hidden: { type: 'string', valueHint: 'N', description: 'Elements of a row; default 7168' },
    'top-k': { type: 'string', valueHint: 'N', description: 'Experts per token; default 8' },
    experts: { type: 'string', valueHint: 'N', description: 'Experts; default 256' },
    dtype: dtypeArgument,
    layout: {
      type: 'string',
      valueHint: 'NAMES',
      description: `Some of ${epLayouts.join(', ')}, with commas; default ${defaultLayouts.join(',')}`,
    },
    ...backendArguments,
    backend: {
      type: 'string',
      valueHint: 'NAME',
      description:
        'auto (the default) or embedded: no GPU backend has expert parallelism yet, so cuda, cuda12 and cuda13 are refused',
    },
  },
  examples: [
    { what: 'The layers of a large model, both modes', line: 'nccl-ext bench ep' },
    {
      what: 'Small rows in one layout, for a script',
      line: 'nccl-ext bench ep --layout packed --tokens 64 --hidden 1024 --json',
    },
  ],
  run: runBench,
});

async function runBench({ arguments: args, env, signal, progress }: Session): Promise<Outcome> {
  requireNoLauncher('bench ep', env);
  const sizes = readSizes(args);
  const layouts = readLayouts(args);
  const tokens = args.integer('tokens', 1, 2 ** 16);
  const { backend, backendReason, timeoutMs, ...threadsAsked } = readEpBackend(args, env);
  const workers = threadsAsked.workers || Math.min(availableParallelism(), sizes.ranks);
  const works = layouts.map((layout): EpSizes => {
    const lowLatency = layout === 'expert-major' || layout === 'rank-major';
    return {
      ...sizes,
      layout,
      tokens: tokens ?? defaultTokens[lowLatency ? 'lowLatency' : 'highThroughput'],
    };
  });
  // Refuses what cannot be before anything is measured.
  const { ranks, ...group } = sizes;
  for (const { tokens: maxTokensPerRank } of works) epMemory({ ...group, maxTokensPerRank }, ranks);
  progress.say(`copy ceiling with ${workers} threads`);
  const threads = new CopyThreads(copyBytes, workers);
  try {
    const [copies] = await repeatTimed([() => threads.copy()], signal);
    const ceiling = {
      gigabytesPerSecond: threads.bytes / median(copies!) / 1e6,
      bytes: threads.bytes,
      how: threads.how,
    };
    const world = await localWorld({ ranks: sizes.ranks, workers, backend, timeoutMs, signal });
    try {
      const rows: EpRow[] = [];
      for (const work of works) {
        progress.say(work.layout);
        rows.push(...(await measureEp(world, epWork(work), threads, signal)));
      }
      progress.say('single tokens');
      const single = epWork({ ...sizes, layout: 'expert-major', tokens: 1 });
      const step = layouts.includes('expert-major') ? await measureEpStep(world, single, signal) : undefined;
      const machine = machineFacts();
      const result: EpBenchResult = { machine, backend, workers, sizes, ceiling, rows, step };
      return {
        ok: true,
        json: epBenchJson(result),
        text: (style) => epBenchText(result, backendReason, style),
      };
    } finally {
      await world.dispose();
    }
  } finally {
    await threads.dispose();
  }
}

function readSizes(args: Arguments): EpBenchResult['sizes'] {
  const experts = args.integer('experts', 1, 65_536) ?? 256;
  const topK = args.integer('top-k', 1, 32) ?? Math.min(8, experts);
  if (topK > experts) {
    throw new NcclExtError('ERR_INVALID_ARGUMENT', `--top-k is ${topK}, but there are ${experts} experts.`, {
      field: '--top-k',
      expected: experts,
      seen: topK,
    });
  }
  return {
    ranks: args.integer('ranks', 1, 64) ?? 4,
    experts,
    topK,
    hidden: args.integer('hidden', 1, 2 ** 20) ?? 7168,
    dtype: readDType(args) ?? 'bf16',
  };
}

function readLayouts(args: Arguments): readonly EpLayout[] {
  const text = args.text('layout');
  if (text === undefined) return defaultLayouts;
  const names = text.split(',');
  const unknown = names.some((name) => !epLayouts.includes(name as EpLayout));
  if (unknown || new Set(names).size < names.length)
    throw wrongValue('layout', text, `some of ${epLayouts.join(', ')}, each once, with commas`);
  return names as EpLayout[];
}
