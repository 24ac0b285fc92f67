// SPDX-License-Identifier: Apache-2.0
// All of `bench m2n` on one world: for each size the copies that bound it and the reshards, then the small steps.

import { NcclExtError } from '@nccl-ext/core';
import type { Session } from '../command.js';
import { binaryBytesText } from '../output/units.js';
import type { CopyCeiling, M2nRow, StepRow } from './bench-result.js';
import type { BenchWorld } from './bench-world.js';
import type { Ceiling } from './ceiling.js';
import { type BenchRow, stepRow } from './m2n-rows.js';
import { measureRow, type RowOptions } from './measure-row.js';
import { measureStep } from './measure-step.js';
import { median, repeatTimed } from './samples.js';
import type { Sides } from './sides.js';

/** Of the tensors of small steps: a usual small one, and next to nothing, which leaves the fixed cost. */
const stepBytes = [2 ** 20, 8];

export interface Measures extends Pick<Session, 'signal' | 'progress'>, Pick<RowOptions, 'copyBytes'> {
  readonly sides: Sides;
  /** Of the tensor. */
  readonly sizes: readonly number[];
  /** Of a row's sampling, in milliseconds. */
  readonly budgetMs?: number;
  /** By copy engines alone; what they cannot do is left out. */
  readonly byCopyEngines?: boolean;
  rows(bytes: number): readonly BenchRow[];
  /** In a sample. */
  executions(bytes: number): number;
  ceiling(bytes: number): Promise<Ceiling>;
}

export interface Measured {
  /** Of the first size. */
  readonly ceiling: CopyCeiling;
  readonly rows: readonly M2nRow[];
  readonly leftOut?: readonly string[];
  readonly steps: readonly StepRow[];
}

/** Collective. */
export async function measureWorld(world: BenchWorld, measures: Measures): Promise<Measured> {
  const { sides, sizes, copyBytes, budgetMs, byCopyEngines = false, signal, progress } = measures;
  const sms = byCopyEngines ? 0 : undefined;
  let first: CopyCeiling | undefined;
  const rows: M2nRow[] = [];
  const leftOut: string[] = [];
  for (const size of sizes) {
    progress.say(`copy ceiling of ${binaryBytesText(size)}`);
    const ceiling = await measures.ceiling(size);
    try {
      first ??= await measureCeiling(world, ceiling, measures);
      for (const row of measures.rows(size)) {
        progress.say(`${row.name}, ${binaryBytesText(size)}`);
        const executions = measures.executions(size);
        const options = { executions, ceiling, copyBytes, signal, sms };
        const measured = measureRow(world, row, budgetMs === undefined ? options : { ...options, budgetMs });
        // Refused on every rank, when nothing has moved.
        const time = await measured.catch((error: unknown) => {
          if (!byCopyEngines || !NcclExtError.is(error, 'ERR_UNSUPPORTED')) throw error;
          leftOut.push(`${row.name} by copy engines: ${error.message.split('\n')[0]}`);
        });
        if (time) rows.push({ ...time, name: row.name, tensorBytes: row.source.bytes });
      }
    } finally {
      await ceiling.dispose();
    }
  }
  progress.say('small steps');
  const steps: StepRow[] = [];
  for (const bytes of stepBytes)
    steps.push(await measureStep(world, stepRow(sides, bytes), { signal, budgetMs, sms }));
  return { ceiling: first!, rows, steps, ...(leftOut.length === 0 ? {} : { leftOut }) };
}

async function measureCeiling(
  world: BenchWorld,
  ceiling: Ceiling,
  { signal, budgetMs }: Measures,
): Promise<CopyCeiling> {
  const options = { together: world, ...(budgetMs === undefined ? {} : { budgetMs }) };
  const [copies] = await repeatTimed([() => ceiling.copy()], signal, options);
  const { bytes, how } = ceiling;
  return { gigabytesPerSecond: bytes / median(copies!) / 1e6, bytes, how };
}
