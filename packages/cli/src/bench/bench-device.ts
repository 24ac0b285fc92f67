// SPDX-License-Identifier: Apache-2.0
// `bench m2n` on GPUs: against copies within the GPU where ranks share one, against copies between GPUs where they are on several.

import { NcclExtError } from '@nccl-ext/core';
import { byCopyEngines, copyEngines } from '../arguments/sms-argument.js';
import type { Session } from '../command.js';
import type { BenchResult, M2nRow, SmBudget } from './bench-result.js';
import type { BenchWorld } from './bench-world.js';
import type { Ceiling } from './ceiling.js';
import { DeviceCopies } from './device-copies.js';
import { busiestLinkBytes } from './link-bytes.js';
import { deviceRows } from './m2n-rows.js';
import { machineFacts } from './machine.js';
import type { RowOptions } from './measure-row.js';
import { type Measured, measureWorld } from './measure-world.js';
import { nominalLinkRate } from './nominal-link.js';
import { PeerCopies } from './peer-copies.js';
import { type Sides, sidesOf } from './sides.js';

/** A copy of this size is as fast as a larger one. */
const mostCopyBytes = 2 ** 30;
/** Bytes that a sample moves, as far as 2 to 16 executions do. */
const sampleBytes = 2 ** 33;
/** GPUs keep their pace better than hosts, and time on them is dear. */
const budgetMs = 400;

/** What `--sms` says, copy engines included; undefined: the library's default. */
export type SmSetting = SmBudget | undefined;

export interface DeviceInput extends Pick<Session, 'signal' | 'progress'> {
  readonly sizes: readonly number[];
  /** Compared in one run, a world each. */
  readonly settings: readonly SmSetting[];
  open(sms: SmSetting): Promise<BenchWorld>;
}

export async function benchDevice(input: DeviceInput): Promise<BenchResult> {
  const results: BenchResult[] = [];
  for (const setting of input.settings) {
    const world = await input.open(setting);
    try {
      results.push(await benchSetting(world, setting, input));
    } finally {
      await world.dispose();
    }
  }
  const rows = results.flatMap((result) => result.rows);
  const steps = results.flatMap((result) => result.steps);
  const leftOut = results.flatMap((result) => result.leftOut ?? []);
  return {
    ...results[0]!,
    rows: together(rows, ({ name, tensorBytes }) => `${tensorBytes} ${name}`),
    steps: together(steps, ({ bytes }) => String(bytes)),
    ...(leftOut.length === 0 ? {} : { leftOut }),
  };
}

/** What differs in its setting only stands together, in the order of the first ones. */
function together<T>(list: readonly T[], keyOf: (item: T) => string): T[] {
  const keys = [...new Set(list.map(keyOf))];
  return keys.flatMap((key) => list.filter((item) => keyOf(item) === key));
}

/** Collective. */
async function benchSetting(
  world: BenchWorld,
  setting: SmSetting,
  { sizes, signal, progress }: DeviceInput,
): Promise<BenchResult> {
  const devices = await world.gather(
    'devices',
    world.ranks.map(({ device: { uuid, name, ranks, smBudget } }) => ({ uuid, name, ranks, smBudget })),
  );
  const gpus = devices.map(({ uuid }) => uuid);
  const sides = sidesOf(gpus);
  const [from, to] = [sides.sources[0]!, sides.destinations[0]!];
  const engines = byCopyEngines(setting);
  const sms = engines ? copyEngines : { senders: devices[from]!.smBudget, receivers: devices[to]!.smBudget };
  const ranksPerGpu = Math.max(...devices.map(({ ranks }) => ranks));
  if (engines) requireOwnGpus(ranksPerGpu);
  const measured = await measureWorld(world, {
    signal,
    progress,
    sides,
    sizes,
    budgetMs,
    byCopyEngines: engines,
    rows: (bytes) => deviceRows(sides, bytes),
    executions: executionsOf,
    copyBytes: copyBytesOn(gpus),
    ceiling: (bytes) => openCeiling(world, gpus, sides, Math.min(bytes, mostCopyBytes)),
  });
  const { name } = devices[0]!;
  return {
    machine: machineFacts(),
    backend: world.backend,
    ranks: world.size,
    processes: world.processes,
    device: { name, gpus: new Set(gpus).size, ranksPerGpu },
    ...withSetting(measured, sms),
    ...(measured.leftOut === undefined ? {} : { leftOut: measured.leftOut }),
    ceiling: ceilingOn(gpus, name, measured.ceiling),
  };
}

/** Behind the start gate of a sample, the copies' graphs would take the hardware queue of another rank's gate: none would open. */
function requireOwnGpus(ranksPerGpu: number): void {
  if (ranksPerGpu === 1) return;
  throw new NcclExtError(
    'ERR_UNSUPPORTED',
    `Here ${ranksPerGpu} ranks share a GPU; 0 SMs (copy engines) need one for each.`,
    {
      help: 'Use --ranks with at most as many ranks as GPUs, or leave out the value 0.',
    },
  );
}

function executionsOf(bytes: number): number {
  return Math.max(2, Math.min(16, Math.round(sampleBytes / bytes)));
}

/** Ranks on one GPU share its memory: what they read and write counts. Between GPUs the links are slower than that by far. */
function copyBytesOn(gpus: readonly string[]): RowOptions['copyBytes'] {
  return ({ matrix, sourceBytes, bytes }) =>
    new Set(gpus).size === 1 ? (sourceBytes + bytes) / 2 : busiestLinkBytes(matrix, gpus);
}

async function openCeiling(
  world: BenchWorld,
  gpus: readonly string[],
  sides: Sides,
  bytes: number,
): Promise<Ceiling> {
  const executions = executionsOf(bytes);
  if (new Set(gpus).size > 1) return PeerCopies.open(world, { gpus, sides, bytes, executions });
  if (world.leads) return DeviceCopies.open(world.ranks[0]!, bytes, executions);
  return { bytes, how: 'copies by rank 0', copy: async () => 0, dispose: async () => {} };
}

function ceilingOn(
  gpus: readonly string[],
  name: string,
  ceiling: BenchResult['ceiling'],
): BenchResult['ceiling'] {
  const nominalGigabytesPerSecond = new Set(gpus).size > 1 ? nominalLinkRate(name) : undefined;
  return nominalGigabytesPerSecond === undefined ? ceiling : { ...ceiling, nominalGigabytesPerSecond };
}

function withSetting({ rows, steps }: Measured, sms: SmBudget): Pick<Measured, 'rows' | 'steps'> {
  // Unasked, the library may choose copy engines for a row.
  const smsOfRow = ({ byCopyEngines }: M2nRow): SmBudget => (byCopyEngines ? copyEngines : sms);
  return {
    rows: rows.map((row) => ({ ...row, sms: smsOfRow(row) })),
    steps: steps.map((step) => ({ ...step, sms })),
  };
}
