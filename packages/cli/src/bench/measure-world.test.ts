// SPDX-License-Identifier: Apache-2.0
// The whole measurement, with all ranks in one process and with one rank in each: every process comes to the same figures.

import { localWorld } from '@nccl-ext/core';
import { expect, it } from 'vitest';
import { copyEngines } from '../arguments/sms-argument.js';
import { ProgressLine } from '../output/progress-line.js';
import { styleFor } from '../output/style.js';
import { benchJson, benchText } from './bench-report.js';
import { type BenchResult, boundOf } from './bench-result.js';
import { worldOfRank } from './bench-world.js';
import type { Ceiling } from './ceiling.js';
import { m2nRows } from './m2n-rows.js';
import { machineFacts } from './machine.js';
import { type Measures, measureWorld } from './measure-world.js';
import { sidesOf } from './sides.js';

const bytes = 2 ** 18;
const sides = sidesOf(['a', 'a', 'a', 'a']);

function measures(ceiling: Ceiling): Measures {
  return {
    signal: new AbortController().signal,
    progress: new ProgressLine({ write: () => {} }),
    sides,
    sizes: [bytes, 2 * bytes],
    budgetMs: 0,
    rows: (size) => m2nRows(sides, size),
    executions: () => 3,
    copyBytes: ({ sourceBytes }) => sourceBytes,
    ceiling: async () => ceiling,
  };
}

it('gathers times of all processes, and prints each row against its bound', async () => {
  const world = await localWorld({ ranks: 4, backend: 'embedded' });
  try {
    const processes = await Promise.all(
      world.ranks.map((rank) => {
        // Only one process copies, as on a GPU that all share.
        const copy = async (): Promise<number> => (rank.rank === 0 ? 0.25 : 0);
        return measureWorld(
          worldOfRank(rank),
          measures({ bytes, how: 'made up', copy, dispose: async () => {} }),
        );
      }),
    );
    for (const other of processes) expect(other).toEqual(processes[0]);
    const { rows, steps, ceiling } = processes[0]!;
    expect(ceiling).toEqual({ bytes, how: 'made up', gigabytesPerSecond: bytes / 0.25 / 1e6 });
    expect(rows.map(({ tensorBytes }) => tensorBytes)).toEqual(
      [1, 1, 1, 1, 2, 2, 2, 2].map((n) => n * bytes),
    );
    for (const row of rows) {
      expect(boundOf(row)).toBe(0.25 * (row.tensorBytes / bytes));
      expect(row.aloneMs).toBeGreaterThan(0);
      expect(row).toMatchObject({ executions: 3, samples: 9, byCopyEngines: false });
    }
    expect(steps.map((step) => step.bytes)).toEqual([2 ** 20, 8]);
    const sms = { senders: 28, receivers: 4 };
    const result: BenchResult = {
      machine: machineFacts(),
      backend: 'cuda13',
      ranks: 4,
      processes: 4,
      device: { name: 'GPU', gpus: 2, ranksPerGpu: 2 },
      ceiling: { ...ceiling, nominalGigabytesPerSecond: 450 },
      rows: rows.map((row) => ({ ...row, sms })),
      steps: steps.map((step) => ({ ...step, sms })),
    };
    const text = benchText(result, 'cuda13 was asked for', styleFor({}, {}));
    expect(text).toContain(
      'cuda13 backend (cuda13 was asked for) on 2 x GPU, 2 ranks each, a process per rank',
    );
    expect(text).toContain('(nominal 450 GB/s)');
    expect(text).toMatch(/row to row +256 KiB +28\+4 /);
    expect(text).toContain('A sample is 3 executions back to back');
    expect(text).not.toContain('copy engines');
    const engines = { ...result, rows: rows.map((row) => ({ ...row, sms: copyEngines })), steps: [] };
    const enginesText = benchText(engines, '', styleFor({}, {}));
    expect(enginesText).toMatch(/row to row +256 KiB +0 /);
    expect(enginesText).toContain('With 0 SMs copy engines alone move the bytes.');
    const json = JSON.parse(JSON.stringify(benchJson(result))) as { rows: object[]; steps: object[] };
    expect(json.rows[0]).toMatchObject({ name: 'row to row', boundMs: 0.25, executions: 3, sms });
    expect(json.steps[1]).toMatchObject({ bytes: 8, sms });
  } finally {
    await world.dispose();
  }
});
