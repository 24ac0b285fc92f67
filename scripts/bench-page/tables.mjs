// SPDX-License-Identifier: Apache-2.0
// A result of `nccl-ext bench m2n` as Markdown: what it ran on, a table of reshards for each size, and one of steps.

import { binaryBytesText, rateText, timeText } from '../../packages/cli/dist/output/units.js';
import { columnOf, distinct, smsOf } from './settings.mjs';

export function tables(result) {
  const { rows, steps } = result;
  const sizes = distinct(rows, ({ tensorBytes }) => binaryBytesText(tensorBytes));
  return [
    placeOf(result),
    '',
    ...sizes.flatMap((size) => [...rowTable(size, rows), '']),
    ...markdown(
      ['step, row to row', 'SMs', 'in a graph', 'one by one', 'enqueue on the host'],
      steps.map((step) => [
        binaryBytesText(step.bytes),
        smsOf(step),
        ...[step.capturedMs, step.uncapturedMs, step.enqueueMs].map(timeText),
      ]),
    ),
    '',
  ].join('\n');
}

function placeOf({ machine, backend, ranks, processes, workers, device, ceiling }) {
  const on =
    device === undefined
      ? `${workers} threads, ${machine.cpu}`
      : `${device.gpus} x ${device.name}, ${device.ranksPerGpu} ranks on each, ${processes === 1 ? 'one process' : 'a process per rank'}`;
  const nominal =
    ceiling.nominalGigabytesPerSecond === undefined
      ? ''
      : ` (nominal ${ceiling.nominalGigabytesPerSecond} GB/s)`;
  return [
    `${ranks / 2} to ${ranks / 2} ranks, backend ${backend}, ${on}, Node.js ${machine.node}, ${machine.system}, ${machine.date}.`,
    `Copy ceiling: ${rateText(ceiling.gigabytesPerSecond)}${nominal}, ${ceiling.how}, ${binaryBytesText(ceiling.bytes)} each.`,
  ].join('\n');
}

/** Reshards of one size; a column for each SM budget. */
function rowTable(size, rows) {
  const own = rows.filter(({ tensorBytes }) => binaryBytesText(tensorBytes) === size);
  const settings = distinct(own, smsOf);
  const names = distinct(own, ({ name }) => name);
  return markdown(
    [size, ...settings.map(columnOf)],
    names.map((name) => [
      name,
      ...settings.map((sms) => cellOf(own.find((row) => row.name === name && smsOf(row) === sms))),
    ]),
  );
}

function cellOf(row) {
  if (row === undefined) return '';
  const { ms, gigabytesPerSecond, ofBound } = row;
  return `${timeText(ms)}, ${rateText(gigabytesPerSecond)}, ${(100 * ofBound).toFixed(0)} %`;
}

function markdown(head, rows) {
  const line = (cells) => `| ${cells.join(' | ')} |`;
  return [line(head), `|${'---|'.repeat(head.length)}`, ...rows.map(line)];
}
