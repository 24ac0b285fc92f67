// SPDX-License-Identifier: Apache-2.0
// How benchmark results read: achieved against bound, and the machine that they belong to.

import { rounded } from '../output/rounded.js';
import type { Style } from '../output/style.js';
import { table } from '../output/table.js';
import { binaryBytesText, countText, rateText, timeText } from '../output/units.js';
import type { MachineFacts } from './machine.js';
import { type PairedTime, type RowTime, stepsPerGraph } from './measure-row.js';

/** What plain copies reach. */
export interface CopyCeiling {
  /** In words. */
  readonly how: string;
  readonly gigabytesPerSecond: number;
  readonly bytes: number;
}

export interface BenchResult {
  readonly machine: MachineFacts;
  readonly backend: string;
  readonly ranks: number;
  /** Of the embedded backend. */
  readonly workers?: number;
  /** Of the CUDA backends: the GPU of rank 0, and what each rank may use of it. */
  readonly device?: { readonly name: string; readonly ranks: number; readonly smBudget: number };
  /** Measured first, alone. */
  readonly ceiling: CopyCeiling;
  readonly rows: readonly (PairedTime & { readonly name: string })[];
  readonly step: { readonly captured: RowTime; readonly uncaptured: RowTime };
}

/** Times are milliseconds. `ofBound` is the bound over the time that was achieved. */
export function benchJson({
  machine,
  backend,
  ranks,
  workers,
  device,
  ceiling,
  rows,
  step,
}: BenchResult): Record<string, unknown> {
  return {
    ok: true,
    machine,
    backend,
    ranks,
    ...(workers === undefined ? {} : { workers }),
    ...(device === undefined ? {} : { device }),
    ceiling: rounded(ceiling),
    rows: rows.map((row) => {
      const { name, bytes, ms, samples } = row;
      const boundMs = boundOf(row);
      const rates = { gigabytesPerSecond: rateOf(row), ceilingGigabytesPerSecond: ceilingOf(row) };
      return rounded({ name, bytes, ms, boundMs, ofBound: boundMs / ms, ...rates, samples });
    }),
    step: {
      bytes: step.captured.bytes,
      stepsPerGraph,
      ...rounded({ capturedMs: step.captured.ms, uncapturedMs: step.uncaptured.ms }),
    },
  };
}

export function benchText(
  { machine, backend, ranks, workers, device, ceiling, rows, step }: BenchResult,
  style: Style,
): string {
  const head = ['reshard', 'bytes', 'time', 'bound', 'rate', 'of bound', 'samples'].map(style.dim);
  const body = rows.map((row) => [
    row.name,
    binaryBytesText(row.bytes),
    timeText(row.ms),
    timeText(boundOf(row)),
    rateText(rateOf(row)),
    style.bold(`${((100 * boundOf(row)) / row.ms).toFixed(0)} %`),
    String(row.samples),
  ]);
  const half = ranks / 2;
  const place =
    device === undefined
      ? `with ${countText(workers ?? 0, 'thread')}`
      : `on ${device.name}, ${device.ranks} ranks on a GPU, ${device.smBudget} SMs each`;
  const { captured, uncaptured } = step;
  return [
    style.bold(`M2N, ${half} to ${half} ranks, ${backend} backend ${place}`),
    `${machine.cpu}, ${countText(machine.cores, 'core')}, Node.js ${machine.node}, ${machine.system}, ${machine.date}`,
    '',
    `Copy ceiling: ${style.bold(rateText(ceiling.gigabytesPerSecond))}, ${ceiling.how} ${binaryBytesText(ceiling.bytes)}`,
    '',
    table([head, ...body], { right: [1, 2, 3, 4, 5, 6] }),
    `Per step of ${binaryBytesText(captured.bytes)}, row to row: ${style.bold(timeText(captured.ms))} in a captured graph of ${stepsPerGraph} steps, ${timeText(uncaptured.ms)} enqueued one by one`,
    '',
    style.dim(
      'Medians; a sample ends when the slowest rank is done. Bounds come from plain copies in turns with each row. Inputs are random.',
    ),
    '',
  ].join('\n');
}

/** The copy that causes as much traffic, at the pace of the copies beside it; milliseconds. */
function boundOf({ copyBytes, ceilingMs, ceilingBytes }: PairedTime): number {
  return (copyBytes / ceilingBytes) * ceilingMs;
}

function ceilingOf({ ceilingBytes, ceilingMs }: PairedTime): number {
  return ceilingBytes / ceilingMs / 1e6;
}

function rateOf({ bytes, ms }: RowTime): number {
  return bytes / ms / 1e6;
}
