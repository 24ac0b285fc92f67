// SPDX-License-Identifier: Apache-2.0
// Makes errors about models readable: what was looked for, and what is near to it.

import { NcclExtError } from '@nccl-ext/core';

/** An ERR_MODEL; `help` says how to give what is missing. */
export function modelError(
  message: string,
  details: { help?: string; field?: string; cause?: unknown } = {},
): NcclExtError {
  return new NcclExtError('ERR_MODEL', message, details);
}

/** The candidate with the smallest edit distance to `text`, or undefined without candidates. */
export function closestOf(text: string, candidates: Iterable<string>): string | undefined {
  let best: string | undefined;
  let bestDistance = Number.POSITIVE_INFINITY;
  for (const candidate of candidates) {
    const distance = editDistance(text.toLowerCase(), candidate.toLowerCase());
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

/** Levenshtein distance, row by row. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const replace = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replace, row[j]! + 1, next[j - 1]! + 1));
    }
    row = next;
  }
  return row[b.length]!;
}
