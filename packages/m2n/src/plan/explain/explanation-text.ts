// SPDX-License-Identifier: Apache-2.0
// Says an explanation in words.

import { linkClasses } from '@nccl-ext/core';
import type { PlanExplanation, RankBytes } from './plan-explanation.js';

export function explanationText(explanation: PlanExplanation): string {
  const { totals, prediction, worldSize, patterns, casts } = explanation;
  const lines = [
    `plan ${explanation.digest.slice(0, 16)}: ${totals.tensors} tensors in ${patterns} patterns over ${worldSize} ranks`,
    `wire            ${bytesText(totals.wireBytes)}${against(totals.wireBytes, totals.lowerBoundBytes)}`,
    `between domains ${bytesText(totals.interDomainBytes)}${against(totals.interDomainBytes, totals.interDomainLowerBoundBytes)}`,
    `forwarded       ${bytesText(totals.forwardedBytes)}`,
    `local           ${bytesText(totals.localBytes)}`,
    `sent per source ${bytesText(totals.meanRankBytes)} on average, ${bytesText(totals.maxRankBytes)} at most`,
    `by link         ${linksText(totals.bytesByLink)}`,
    `predicted       ${secondsText(prediction.seconds)} on the planned topology, at least ${secondsText(prediction.lowerBoundSeconds)} (x ${prediction.gap.toFixed(2)})`,
  ];
  const { bottleneck } = prediction;
  if (bottleneck) {
    const { rank, direction, link, bytes, seconds } = bottleneck;
    lines.push(
      `limited by      rank ${rank}, which ${direction} ${bytesText(bytes)} over ${link} in ${secondsText(seconds)}`,
    );
  }
  for (const { from, to, tensors, bytes } of casts) {
    lines.push(`casts           ${tensors} tensors from ${from} to ${to}, ${bytesText(bytes)}`);
  }
  lines.push(`most sent       ${ranksText(explanation.topSenders)}`);
  lines.push(`most received   ${ranksText(explanation.topReceivers)}`);
  for (const { name, bytes, sourceRanks, destinationRanks } of explanation.largestTensors) {
    lines.push(`large           ${name}: ${bytesText(bytes)}, ${sourceRanks} to ${destinationRanks} ranks`);
  }
  return `${lines.join('\n')}\n`;
}

function against(bytes: number, bound: number): string {
  if (bound === 0) return '';
  return bytes === bound ? ', the lower bound' : `, ${(bytes / bound).toFixed(3)} x the lower bound`;
}

/** Links are where the topology puts them; the embedded backend has none. */
function linksText(bytesByLink: PlanExplanation['totals']['bytesByLink']): string {
  const used = linkClasses.filter((name) => bytesByLink[name] > 0);
  if (used.length === 0) return 'nothing';
  return `${used.map((name) => `${name} ${bytesText(bytesByLink[name])}`).join(', ')} (planned topology)`;
}

function ranksText(list: readonly RankBytes[]): string {
  if (list.length === 0) return 'nothing';
  return list.map(({ rank, bytes }) => `rank ${rank} ${bytesText(bytes)}`).join(', ');
}

/** Three digits and a decimal unit, as bandwidths are given. */
export function bytesText(bytes: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB', 'PB', 'EB'];
  let unit = 0;
  let value = bytes;
  // 999.5 would round to "1.00e+3".
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1000;
    unit++;
  }
  return `${unit === 0 ? Math.round(value) : value.toPrecision(3)} ${units[unit]}`;
}

function secondsText(seconds: number): string {
  if (seconds >= 999.5) return `${seconds.toFixed(0)} s`;
  if (seconds >= 0.9995) return `${seconds.toPrecision(3)} s`;
  if (seconds >= 0.9995e-3) return `${(seconds * 1e3).toPrecision(3)} ms`;
  return `${(seconds * 1e6).toPrecision(3)} us`;
}
