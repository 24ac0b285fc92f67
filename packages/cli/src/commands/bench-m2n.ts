// SPDX-License-Identifier: Apache-2.0
// `nccl-ext bench m2n`: reshards against the copy ceiling that the same threads or GPUs reach in the same run.

import { availableParallelism } from 'node:os';
import { type BackendChoice, localWorld, type World } from '@nccl-ext/core';
import { wrongValue } from '../arguments/arguments.js';
import { readBackendInput } from '../arguments/backend-arguments.js';
import { type BenchResult, benchJson, benchText } from '../bench/bench-report.js';
import type { Ceiling } from '../bench/ceiling.js';
import { CopyThreads } from '../bench/copy-ceiling.js';
import { DeviceCopies } from '../bench/device-copies.js';
import { type BenchRow, deviceRows, m2nRows, stepRow } from '../bench/m2n-rows.js';
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
    bytes: {
      type: 'string',
      valueHint: 'N',
      description: 'Bytes of the tensor; default 256MiB, on GPUs 1GiB',
    },
    backend: {
      type: 'string',
      valueHint: 'NAME',
      description: 'embedded (the default), cuda, cuda12 or cuda13',
    },
    sms: { type: 'string', valueHint: 'N', description: 'SMs of a GPU that each rank may use' },
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
    { what: 'Reshards of 1 GiB on the GPUs here', line: 'nccl-ext bench m2n --backend cuda' },
  ],
  run: runBench,
});

async function runBench({ arguments: args, env, signal, progress }: Session): Promise<Outcome> {
  const ranks = args.integer('ranks', 4, 64) ?? 8;
  if (ranks % 4 !== 0) throw wrongValue('ranks', String(ranks), 'a multiple of 4, from 4 to 64');
  const asked = args.oneOf('backend', ['embedded', 'cuda', 'cuda12', 'cuda13']) ?? 'embedded';
  const { backend } = readBackendInput(args, asked === 'embedded' ? {} : env);
  const bytes = args.bytes('bytes', 16 * 2 ** 20, 2 ** 36) ?? (asked === 'embedded' ? defaultBytes : 2 ** 30);
  const input: Input = { ranks, bytes, signal, progress };
  const result =
    asked === 'embedded'
      ? await benchHost(input, args.libraryNumber('workers', 'workers') ?? 0)
      : await benchDevice(input, backend, args.libraryNumber('sms', 'sms'));
  return { ok: true, json: benchJson(result), text: (style) => benchText(result, style) };
}

interface Input extends Pick<Session, 'signal' | 'progress'> {
  readonly ranks: number;
  readonly bytes: number;
}

async function benchHost(input: Input, asked: number): Promise<BenchResult> {
  const { ranks, bytes, signal, progress } = input;
  const workers = asked === 0 ? Math.min(availableParallelism(), ranks) : asked;
  progress.say(`copy ceiling with ${workers} threads`);
  const threads = new CopyThreads(bytes, workers);
  try {
    const ceiling = await measureCeiling(threads, signal);
    const world = await localWorld({ ranks, workers, backend: 'embedded', signal });
    try {
      const measured = await measureAll(input, world, threads, m2nRows(ranks, bytes));
      return { machine: machineFacts(), backend: 'embedded', ranks, workers, ceiling, ...measured };
    } finally {
      await world.dispose();
    }
  } finally {
    await threads.dispose();
  }
}

async function benchDevice(
  input: Input,
  backend: BackendChoice,
  sms: number | undefined,
): Promise<BenchResult> {
  const { ranks, bytes, signal, progress } = input;
  const world = await localWorld({ ranks, backend, signal, ...(sms === undefined ? {} : { sms }) });
  try {
    const { name, ranks: sharing, smBudget } = world.ranks[0]!.device;
    progress.say('copy ceiling');
    const copies = await DeviceCopies.open(world.ranks[0]!, bytes);
    try {
      const ceiling = await measureCeiling(copies, signal);
      const measured = await measureAll(input, world, copies, deviceRows(ranks, bytes));
      const device = { name, ranks: sharing, smBudget };
      return { machine: machineFacts(), backend: world.backend.name, ranks, device, ceiling, ...measured };
    } finally {
      await copies.dispose();
    }
  } finally {
    await world.dispose();
  }
}

async function measureCeiling(ceiling: Ceiling, signal: AbortSignal): Promise<BenchResult['ceiling']> {
  const [copies] = await repeatTimed([() => ceiling.copy()], signal);
  const { bytes, how } = ceiling;
  return { gigabytesPerSecond: bytes / median(copies!) / 1e6, bytes, how };
}

async function measureAll(
  { ranks, signal, progress }: Input,
  world: World,
  ceiling: Ceiling,
  wanted: readonly BenchRow[],
): Promise<Pick<BenchResult, 'rows' | 'step'>> {
  const rows: BenchResult['rows'][number][] = [];
  for (const row of wanted) {
    progress.say(row.name);
    rows.push({ name: row.name, ...(await measureRow(world, row, ceiling, signal)) });
  }
  progress.say('small steps');
  return { rows, step: await measureStep(world, stepRow(ranks, stepBytes), signal) };
}
