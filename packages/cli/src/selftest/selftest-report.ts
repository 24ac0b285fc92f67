// SPDX-License-Identifier: Apache-2.0
// How the results of the conformance cases read: a line per group, then every failure in full.

import type { RunSummary } from '@nccl-ext/conformance';
import { rounded } from '../output/rounded.js';
import type { Style } from '../output/style.js';
import { table } from '../output/table.js';
import { countText, timeText } from '../output/units.js';

/** Where cases ran. */
export interface SelftestPlace {
  readonly backend: string;
  /** Why this one, in words. */
  readonly backendReason: string;
  /** How many ran the cases together, where a launcher started them. */
  readonly processes: number | undefined;
}

export function selftestJson(
  summary: RunSummary,
  { backend, processes }: SelftestPlace,
): Record<string, unknown> {
  const { passed, failed, skipped, cases } = summary;
  const where = { backend, ...(processes === undefined ? {} : { processes }) };
  return { ok: failed === 0, ...where, passed, failed, skipped, cases: cases.map((one) => rounded(one)) };
}

export function selftestText(
  summary: RunSummary,
  { backend, backendReason, processes }: SelftestPlace,
  style: Style,
): string {
  const groups = [...new Set(summary.cases.map(({ group }) => group))];
  const head = ['group', 'passed', 'failed', 'skipped', 'time'].map(style.dim);
  const rows = groups.map((group) => {
    const cases = summary.cases.filter((one) => one.group === group);
    const count = (status: string): number => cases.filter((one) => one.status === status).length;
    const failures = count('failed');
    const ms = cases.reduce((sum, one) => sum + one.ms, 0);
    return [
      group,
      String(count('passed')),
      failures === 0 ? '0' : style.red(String(failures)),
      String(count('skipped')),
      timeText(ms),
    ];
  });
  const notable = summary.cases.filter(({ status }) => status !== 'passed');
  const details = notable.map(
    ({ name, status, detail }) =>
      `${status === 'failed' ? style.red('FAILED') : style.yellow('skipped')} ${name}\n  ${detail.replaceAll('\n', '\n  ')}\n`,
  );
  return [
    table([head, ...rows], { right: [1, 2, 3, 4] }),
    ...details,
    `${verdict(summary, style)} on the ${backend} backend (${backendReason})${processes === undefined ? '' : `, ${processes} processes`}\n`,
  ].join('\n');
}

function verdict({ passed, failed, skipped }: RunSummary, style: Style): string {
  const counts = `${countText(passed, 'case')} passed, ${failed} failed, ${skipped} skipped`;
  return failed === 0 ? `${style.green('passed')}: ${counts}` : `${style.red('failed')}: ${counts}`;
}
