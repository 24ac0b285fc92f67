// SPDX-License-Identifier: Apache-2.0
// The figures that a reader looks for first.

import type { RefitResult } from '../refit/refit-result.js';
import { formatBytes, formatCount, formatMilliseconds, formatRate } from './format.js';
import { type Html, html } from './html.js';

export function summaryTiles(result: RefitResult): Html {
  const { wireBytes, lowerBoundBytes } = result;
  const bound =
    lowerBoundBytes === 0
      ? 'nothing has to travel'
      : `${(wireBytes / lowerBoundBytes).toFixed(2)} x the lower bound of ${formatBytes(lowerBoundBytes)}`;
  return html`<section class="tiles">
${tile('Tensors', formatCount(result.tensors), `${formatBytes(result.parameterBytes)} of parameters`)}
${tile('On the wire', formatBytes(wireBytes), bound)}
${tile('Within ranks', formatBytes(result.localBytes), 'copied without leaving a rank')}
${tile('Throughput', formatRate(result.gigabytesPerSecond), `${formatMilliseconds(result.moveMs)} from first grant to last arrival`)}
${tile('Stall', formatMilliseconds(result.stallMs), stallNote(result))}
${tile('Ranks', formatCount(result.ranks), `${result.backend} backend`)}
${
  result.verified
    ? tile(
        'Verified',
        'yes',
        result.hashed
          ? 'every byte: hashes on the wire, then each destination against its source'
          : 'every byte: each destination against its source',
        'good',
      )
    : tile('Verified', 'no', 'run again with --verify', 'warn')
}
</section>`;
}

/** A first refit costs more than those after it. */
function stallNote({ repeats }: RefitResult): string {
  if (repeats.length < 2) return 'no rank served, from pause to published';
  return `from pause to published; median of ${repeats.length}, the first ${formatMilliseconds(repeats[0]!.stallMs)}`;
}

function tile(name: string, value: string, note: string, kind = ''): Html {
  return html`<div class="tile ${kind}"><p class="name">${name}</p><p class="value">${value}</p><p class="note">${note}</p></div>`;
}
