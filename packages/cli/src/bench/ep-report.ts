// SPDX-License-Identifier: Apache-2.0
// How `bench ep` reads: bytes by the formula that others use, bytes that must move, and the time against the bound.

import { rounded } from '../output/rounded.js';
import type { Style } from '../output/style.js';
import { table } from '../output/table.js';
import { binaryBytesText, bytesText, countText, rateText, timeText } from '../output/units.js';
import type { CopyCeiling } from './bench-result.js';
import type { EpSizes } from './ep-work.js';
import type { MachineFacts } from './machine.js';
import type { EpRow } from './measure-ep.js';
import { stepsPerGraph } from './measure-step.js';

export interface EpBenchResult {
  readonly machine: MachineFacts;
  readonly backend: string;
  readonly workers: number;
  readonly sizes: Omit<EpSizes, 'layout' | 'tokens'>;
  readonly ceiling: CopyCeiling;
  readonly rows: readonly EpRow[];
  /** Low latency, one token per rank; absent when expert-major was not asked for. */
  readonly step: { readonly capturedMs: number; readonly uncapturedMs: number } | undefined;
}

/** Times are milliseconds. `gigabytesPerSecond` is that of the formula, as other benchmarks print it. */
export function epBenchJson({
  machine,
  backend,
  workers,
  sizes,
  ceiling,
  rows,
  step,
}: EpBenchResult): Record<string, unknown> {
  return {
    ok: true,
    machine,
    backend,
    workers,
    ...sizes,
    ceiling: rounded(ceiling),
    rows: rows.map((row) => {
      const { layout, operation, tokens, bytes, movedBytes, ms, samples } = row;
      const boundMs = boundOf(row);
      const rates = {
        gigabytesPerSecond: bytes / ms / 1e6,
        ceilingGigabytesPerSecond: row.ceilingBytes / row.ceilingMs / 1e6,
      };
      return rounded({
        layout,
        operation,
        tokens,
        formulaBytes: bytes,
        movedBytes,
        ms,
        boundMs,
        ofBound: boundMs / ms,
        ...rates,
        samples,
      });
    }),
    ...(step === undefined
      ? {}
      : { step: { layout: 'expert-major', tokens: 1, stepsPerGraph, ...rounded(step) } }),
  };
}

/** `backendReason`: why this backend, in words. */
export function epBenchText(
  { machine, backend, workers, sizes, ceiling, rows, step }: EpBenchResult,
  backendReason: string,
  style: Style,
): string {
  const { ranks, experts, topK, hidden, dtype } = sizes;
  const head = [
    'layout',
    'operation',
    'tokens',
    'by formula',
    'moved',
    'time',
    'bound',
    'rate',
    'of bound',
    'samples',
  ];
  const body = rows.map((row) => [
    row.layout,
    row.layout === 'flat' || row.layout === 'packed' ? withRoute(row.operation) : row.operation,
    String(row.tokens),
    bytesText(row.bytes),
    bytesText(row.movedBytes),
    timeText(row.ms),
    timeText(boundOf(row)),
    rateText(row.bytes / row.ms / 1e6),
    style.bold(`${((100 * boundOf(row)) / row.ms).toFixed(0)} %`),
    String(row.samples),
  ]);
  return [
    style.bold(
      `EP, ${countText(ranks, 'rank')}, ${backend} backend (${backendReason}) with ${countText(workers, 'thread')}`,
    ),
    `${countText(experts, 'expert')}, top-${topK}, rows of ${hidden} ${dtype}, uniform routing`,
    `${machine.cpu}, ${countText(machine.cores, 'core')}, Node.js ${machine.node}, ${machine.system}, ${machine.date}`,
    '',
    `Copy ceiling: ${style.bold(rateText(ceiling.gigabytesPerSecond))}, ${countText(workers, 'thread')} copying ${binaryBytesText(ceiling.bytes)}`,
    '',
    table([head.map(style.dim), ...body], { right: [2, 3, 4, 5, 6, 7, 8, 9] }),
    ...(step === undefined
      ? []
      : [
          `One token per rank, expert-major, dispatch and combine: ${style.bold(timeText(step.capturedMs))} per step in a captured graph of ${stepsPerGraph} steps, ${timeText(step.uncapturedMs)} enqueued one by one`,
          '',
        ]),
    style.dim(
      'All ranks together; medians; a sample ends when the slowest rank is done. By formula: unique (token, rank) pairs, of expert-major combine selections, one direction; the rate is of these. Moved: rows read once, and rows written; the bound is a plain copy of half of that, in turns with each row.',
    ),
    '',
  ].join('\n');
}

function withRoute(operation: EpRow['operation']): string {
  return operation === 'dispatch' ? 'route, dispatch' : operation;
}

function boundOf({ copyBytes, ceilingMs, ceilingBytes }: EpRow): number {
  return (copyBytes / ceilingBytes) * ceilingMs;
}
