// SPDX-License-Identifier: Apache-2.0
// Tables and pictures show every row of a result. The figures are made up.

import { expect, it } from 'vitest';
import { chart } from './bench-page/chart.mjs';
import { tables } from './bench-page/tables.mjs';

const row = (name, senders, receivers, ms, ofBound) => ({
  ...{ name, tensorBytes: 2 ** 30, bytes: 2 ** 30, ms, ofBound, gigabytesPerSecond: 2 ** 30 / ms / 1e6 },
  sms: { senders, receivers },
});
const result = {
  machine: { cpu: 'CPU', node: '1.2.3', system: 'OS', date: '2000-01-01' },
  ...{ backend: 'cuda13', ranks: 8, processes: 8, device: { name: 'GPU', gpus: 2, ranksPerGpu: 4 } },
  ceiling: { gigabytesPerSecond: 400, bytes: 2 ** 30, how: 'copies', nominalGigabytesPerSecond: 450 },
  rows: [
    row('row to row', 8, 8, 4, 0.5),
    row('row to row', 28, 4, 2, 1),
    row('row to <column>', 8, 8, 5, 0.4),
    row('row to <column>', 28, 4, 4, 0.5),
  ],
  steps: [
    { bytes: 8, capturedMs: 0.01, uncapturedMs: 0.02, enqueueMs: 0.003, sms: { senders: 8, receivers: 8 } },
  ],
};

it('writes a column for each SM budget', () => {
  const text = tables(result);
  expect(text).toContain('4 to 4 ranks, backend cuda13, 2 x GPU, 4 ranks on each, a process per rank');
  expect(text).toContain('400 GB/s (nominal 450 GB/s)');
  expect(text).toContain(
    '| 1 GiB | 8 SMs | 28+4 SMs |\n|---|---|---|\n| row to row | 4.00 ms, 268 GB/s, 50 % |',
  );
  expect(text).toContain('| 8 B | 8 | 10.0 us | 20.0 us | 3.00 us |');
  expect(tables({ ...result, rows: [row('row to row', 0, 0, 4, 0.5)] })).toContain(
    '| 1 GiB | copy engines |',
  );
});

it('draws a line for each reshard, by SMs, or by size where SMs are the same', () => {
  const svg = chart(result, 'M2N');
  expect(svg.match(/stroke-width="2"/g)).toHaveLength(2);
  for (const text of ['28+4', 'SMs per rank', 'row to &lt;column&gt;']) expect(svg).toContain(text);
  const sizes = [2 ** 30, 2 ** 32].map((tensorBytes) => ({ ...result.rows[0], tensorBytes }));
  const bySize = chart({ ...result, rows: sizes }, 'M2N');
  for (const text of ['1 GiB', '4 GiB', 'bytes of the tensor']) expect(bySize).toContain(text);
});
