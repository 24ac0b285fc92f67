// SPDX-License-Identifier: Apache-2.0
// `nccl-ext bench m2n`: reshards against the copy ceiling that the same threads reach in the same run.

import { availableParallelism } from 'node:os';
import { localWorld } from '@nccl-ext/core';
import { wrongValue } from '../arguments/arguments.js';
import { type BenchResult, benchJson, benchText } from '../bench/bench-report.js';
import { CopyThreads } from '../bench/copy-ceiling.js';
import { m2nRows, stepRow } from '../bench/m2n-rows.js';
import { machineFacts } from '../bench/machine.js';
import { measureRow, measureStep } from '../bench/measure-row.js';
import { median, repeatTimed } from '../bench/samples.js';
import { type Command, defineLeaf, type Outcome, type Session } from '../command.js';

const defaultBytes = 256 * 2 ** 20;
const stepBytes = 2 ** 20;

export const benchM2nCommand: Command = defineLeaf({
  meta: { name: 'm2n', description: 'Measure reshards against the copy ceiling of this machine' },
  usage: ['[options]'],
  args: {
    ranks: {
      type: 'string',
      valueHint: 'N',
      description: 'Ranks, half of them sources; a multiple of 4, default 8',
    },
    bytes: { type: 'string', valueHint: 'N', description: 'Bytes of the tensor, as in 256MiB (the default)' },
    workers: {
      type: 'string',
      valueHint: 'N',
      description: 'Threads; default one per core, at most one per rank',
    },
  },
  examples: [
    { what: 'Reshards of 256 MiB between 4 and 4 ranks', line: 'nccl-ext bench m2n' },
    {
      what: 'One thread, a small tensor, for a script',
      line: 'nccl-ext bench m2n --workers 1 --bytes 64MiB --json',
    },
  ],
  run: runBench,
});

async function runBench({ arguments: args, signal, progress }: Session): Promise<Outcome> {
  const ranks = args.integer('ranks', 4, 64) ?? 8;
  if (ranks % 4 !== 0) throw wrongValue('ranks', String(ranks), 'a multiple of 4, from 4 to 64');
  const bytes = args.bytes('bytes', 16 * 2 ** 20, 2 ** 36) ?? defaultBytes;
  const asked = args.libraryNumber('workers', 'workers') ?? 0;
  const workers = asked === 0 ? Math.min(availableParallelism(), ranks) : asked;
  progress.say(`copy ceiling with ${workers} threads`);
  const threads = new CopyThreads(bytes, workers);
  try {
    const [copies] = await repeatTimed([() => threads.copy()], signal);
    const gigabytesPerSecond = threads.bytes / median(copies!) / 1e6;
    const ceiling = { gigabytesPerSecond, bytes: threads.bytes };
    const measured = await measureAll({ ranks, bytes, workers, threads, signal, progress });
    const result: BenchResult = { machine: machineFacts(), ranks, workers, ceiling, ...measured };
    return { ok: true, json: benchJson(result), text: (style) => benchText(result, style) };
  } finally {
    await threads.dispose();
  }
}

interface Measurement extends Pick<Session, 'signal' | 'progress'> {
  readonly ranks: number;
  readonly bytes: number;
  readonly workers: number;
  readonly threads: CopyThreads;
}

async function measureAll({
  ranks,
  bytes,
  workers,
  threads,
  signal,
  progress,
}: Measurement): Promise<Pick<BenchResult, 'rows' | 'step'>> {
  const world = await localWorld({ ranks, workers, backend: 'embedded', signal });
  try {
    const rows: BenchResult['rows'][number][] = [];
    for (const row of m2nRows(ranks, bytes)) {
      progress.say(row.name);
      rows.push({ name: row.name, ...(await measureRow(world, row, threads, signal)) });
    }
    progress.say('small steps');
    return { rows, step: await measureStep(world, stepRow(ranks, stepBytes), signal) };
  } finally {
    await world.dispose();
  }
}
