// SPDX-License-Identifier: Apache-2.0
// How benchmark results read: achieved against bound, and the machine that they belong to.

import { byCopyEngines } from '../arguments/sms-argument.js';
import { rounded } from '../output/rounded.js';
import type { Style } from '../output/style.js';
import { table } from '../output/table.js';
import { binaryBytesText, countText, rateText, timeText } from '../output/units.js';
import {
  type BenchResult,
  boundOf,
  type CopyCeiling,
  type M2nRow,
  type StepRow,
  smsText,
} from './bench-result.js';
import { stepsPerGraph } from './measure-step.js';

/** Times are milliseconds of one execution. `ofBound` is the bound over the time that was achieved. */
export function benchJson(result: BenchResult): Record<string, unknown> {
  const { ceiling, rows, steps, ...facts } = result;
  return {
    ok: true,
    ...facts,
    ceiling: rounded(ceiling),
    rows: rows.map((row) => {
      const { name, tensorBytes, sms, bytes, ms, aloneMs, executions, samples } = row;
      const boundMs = boundOf(row);
      return {
        ...rounded({ name, tensorBytes, bytes, ms, aloneMs, boundMs, ofBound: boundMs / ms }),
        ...rounded({ gigabytesPerSecond: rateOf(row), ceilingGigabytesPerSecond: ceilingOf(row) }),
        executions,
        samples,
        ...(sms === undefined ? {} : { sms }),
      };
    }),
    stepsPerGraph,
    // Steps take microseconds: three decimals of a millisecond would cut them short.
    steps: steps.map(({ bytes, sms, samples, ...times }) => ({
      bytes,
      ...Object.fromEntries(Object.entries(times).map(([name, ms]) => [name, Number(ms.toPrecision(4))])),
      samples,
      ...(sms === undefined ? {} : { sms }),
    })),
  };
}

/** `backendReason`: why this backend, in words. */
export function benchText(result: BenchResult, backendReason: string, style: Style): string {
  const { machine, ranks, backend, rows, steps, leftOut = [] } = result;
  const half = countText(ranks / 2, 'rank');
  return [
    style.bold(`M2N, ${ranks / 2} to ${half}, ${backend} backend (${backendReason}) ${placeText(result)}`),
    `${machine.cpu}, ${countText(machine.cores, 'core')}, Node.js ${machine.node}, ${machine.system}, ${machine.date}`,
    '',
    ceilingText(result.ceiling, style),
    '',
    rowTable(rows, style),
    ...leftOut.map((row) => `Left out: ${row}`),
    stepTable(steps, style),
    style.dim(methodText(result)),
    '',
  ].join('\n');
}

function placeText({ workers, device, processes }: BenchResult): string {
  if (device === undefined) return `with ${countText(workers ?? 0, 'thread')}`;
  const { name, gpus, ranksPerGpu } = device;
  const on = gpus === 1 ? `on ${name}` : `on ${gpus} x ${name}, ${countText(ranksPerGpu, 'rank')} each`;
  return `${on}, ${processes === 1 ? 'one process' : 'a process per rank'}`;
}

function ceilingText(
  { how, gigabytesPerSecond, bytes, nominalGigabytesPerSecond }: CopyCeiling,
  style: Style,
): string {
  const nominal =
    nominalGigabytesPerSecond === undefined
      ? ''
      : ` per GPU and direction (nominal ${nominalGigabytesPerSecond} GB/s)`;
  return `Copy ceiling: ${style.bold(rateText(gigabytesPerSecond))}${nominal}, ${how}, ${binaryBytesText(bytes)} each`;
}

function rowTable(rows: readonly M2nRow[], style: Style): string {
  const head = ['reshard', 'bytes', 'SMs', 'time', 'alone', 'bound', 'rate', 'of bound', 'samples'];
  const body = rows.map((row) => [
    row.name,
    binaryBytesText(row.bytes),
    row.sms === undefined ? '-' : smsText(row.sms),
    timeText(row.ms),
    timeText(row.aloneMs),
    timeText(boundOf(row)),
    rateText(rateOf(row)),
    style.bold(`${((100 * boundOf(row)) / row.ms).toFixed(0)} %`),
    String(row.samples),
  ]);
  return table([head.map(style.dim), ...body], { right: [1, 2, 3, 4, 5, 6, 7, 8] });
}

function stepTable(steps: readonly StepRow[], style: Style): string {
  const head = ['step, row to row', 'SMs', 'in a graph', 'one by one', 'enqueue on the host', 'samples'];
  const body = steps.map(({ bytes, sms, capturedMs, uncapturedMs, enqueueMs, samples }) => [
    binaryBytesText(bytes),
    sms === undefined ? '-' : smsText(sms),
    style.bold(timeText(capturedMs)),
    timeText(uncapturedMs),
    timeText(enqueueMs),
    String(samples),
  ]);
  return table([head.map(style.dim), ...body], { right: [1, 2, 3, 4, 5] });
}

function methodText({ rows, steps }: Pick<BenchResult, 'rows' | 'steps'>): string {
  const counts = [...new Set(rows.map(({ executions }) => executions))].join(' or ');
  const sample =
    counts === '1'
      ? 'A sample is one execution'
      : `A sample is ${counts} executions back to back (alone: one)`;
  return [
    `Medians. ${sample}, and ends when the slowest rank is done.`,
    ...([...rows, ...steps].some(({ sms }) => byCopyEngines(sms))
      ? ['With 0 SMs copy engines alone move the bytes.']
      : []),
    `Bounds come from plain copies in turns with each row. Steps are ${stepsPerGraph} in a graph, or enqueued one by one. Inputs are random.`,
  ].join('\n');
}

function ceilingOf({ ceilingBytes, ceilingMs }: M2nRow): number {
  return ceilingBytes / ceilingMs / 1e6;
}

function rateOf({ bytes, ms }: M2nRow): number {
  return bytes / ms / 1e6;
}
