// SPDX-License-Identifier: Apache-2.0
// What `nccl-ext doctor` tells a person.

import type { Style } from '../output/style.js';
import { table } from '../output/table.js';
import { wrap } from '../output/wrap.js';
import type { Check, CheckStatus } from './check.js';
import type { OptionLine } from './option-checks.js';

export interface DoctorFindings {
  readonly version: string;
  readonly ok: boolean;
  /** The backend that would run; null when none would. */
  readonly backend: string | null;
  readonly checks: readonly Check[];
  readonly options: readonly OptionLine[];
}

const width = 80;

export function doctorText({ version, ok, backend, checks, options }: DoctorFindings, style: Style): string {
  const marks: Record<CheckStatus, string> = {
    ok: style.green('ok'),
    absent: style.dim('-'),
    warning: style.yellow('warn'),
    failed: style.red('FAIL'),
  };
  const rows = checks.flatMap(({ name, status, found, fix }) => [
    ...cells([marks[status], style.bold(name)], found),
    ...(fix === undefined ? [] : fix.split('\n').flatMap((line) => cells(['', ''], `fix: ${line}`))),
  ]);
  const settings = options.map(({ option, variable, value, origin }) => [
    option,
    value === null ? style.dim('not set') : valueText(option, value),
    origin === 'environment' ? variable : origin === 'call' ? `--${option}` : style.dim(origin),
  ]);
  const failures = checks.filter(({ status }) => status === 'failed').length;
  const verdict = ok
    ? `${style.green('Usable')}: worlds run on the ${backend} backend.`
    : `${style.red('Not usable as it is')}: ${failures} of ${checks.length} lines failed.`;
  return `${style.bold(`nccl-ext ${version}`)}\n\n${table(rows)}\n${style.bold('Options in effect')}\n${table(settings)}\n${verdict}\n`;
}

function cells(front: readonly [string, string], text: string): string[][] {
  const lines = text.split('\n').flatMap((line) => wrap(line, width));
  return lines.map((line, index) => [...(index === 0 ? front : ['', '']), line]);
}

/** An option whose name ends in Ms counts milliseconds. */
function valueText(option: string, value: string | number | readonly number[]): string {
  if (option.endsWith('Ms')) return `${value} ms`;
  if (option === 'workers') return value === 0 ? 'one per core, at most one per rank' : `${value} threads`;
  if (option === 'sms') return value === 0 ? '0.8 x SMs of the GPU / ranks on it' : `${value} SMs`;
  return option === 'planCacheEntries' ? `${value} plans` : String(value);
}
