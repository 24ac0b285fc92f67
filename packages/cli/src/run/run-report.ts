// SPDX-License-Identifier: Apache-2.0
// Which rank failed and how, for people and for programs.

import type { Style } from '../output/style.js';
import { countText, timeText } from '../output/units.js';
import type { RankEnd } from './rank-process.js';
import { hasFailed, type RunResult } from './run-ranks.js';

/** The object of `--json`. */
export function runJson({ ranks, failure }: RunResult): Record<string, unknown> {
  return { ok: failure === undefined, ranks };
}

/** Lines for stderr about the rank that failed first. */
export function failureText({ ranks }: RunResult, failure: RankEnd, style: Style): string {
  const others = ranks.filter((end) => end !== failure && hasFailed(end)).length;
  const first = `${style.bold(style.red('failed'))} rank ${failure.rank} ${howItEnded(failure)}\n`;
  if (others === 0) return first;
  return `${first}  ${countText(others, 'other rank')} ended because of it or after it.\n`;
}

function howItEnded({ exitCode, signal, error, ms }: RankEnd): string {
  if (error !== undefined) return `did not start: ${error}`;
  const end = signal === null ? `ended with exit code ${exitCode}` : `was ended by ${signal}`;
  return `${end} after ${timeText(ms)}`;
}
