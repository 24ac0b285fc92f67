// SPDX-License-Identifier: Apache-2.0
// What `nccl-ext plan m2n` tells a person.

import { linkClasses } from '@nccl-ext/core';
import type { TransferPlan } from '@nccl-ext/m2n';
import type { Style } from '../output/style.js';
import { table } from '../output/table.js';
import { bytesText, countText, ratioText, timeText } from '../output/units.js';
import type { PlanFacts } from './plan-json.js';

type Prediction = ReturnType<TransferPlan['explain']>['prediction'];

export function planText(
  { input, plan, layoutMs, planMs, rank, moves, files }: PlanFacts,
  style: Style,
): string {
  const { totals } = plan;
  const against =
    totals.lowerBoundBytes === 0
      ? 'nothing has to travel'
      : `lower bound ${bytesText(totals.lowerBoundBytes)}, ${ratioText(totals.wireBytes / totals.lowerBoundBytes)}`;
  const rows: string[][] = [
    [
      'model',
      `${input.name}: ${countText(totals.tensors, 'tensor')} in ${countText(plan.patterns, 'pattern')}`,
    ],
    ['from', input.from],
    ['to', input.to],
    ['ranks', countText(plan.worldSize, 'rank')],
    ['wire', `${bytesText(totals.wireBytes)} (${against})`],
    ['local', bytesText(totals.localBytes)],
    [
      'between domains',
      `${bytesText(totals.interDomainBytes)} (lower bound ${bytesText(totals.interDomainLowerBoundBytes)})`,
    ],
    [
      'sent per rank',
      `${bytesText(totals.meanRankBytes)} on average, ${bytesText(totals.maxRankBytes)} at most`,
    ],
    ['predicted', predicted(plan.explain().prediction)],
    ['program', `${countText(moves, 'move')} of rank ${rank}`],
    ['planned in', `${timeText(planMs)}, after ${timeText(layoutMs)} from rules to layouts`],
    ['digest', plan.digest],
  ];
  for (const [name, path] of Object.entries(files)) if (path !== undefined) rows.push([name, path]);
  const links = linkClasses
    .filter((name) => totals.bytesByLink[name] > 0)
    .map((name) => [name, bytesText(totals.bytesByLink[name])]);
  return [
    `${style.green('planned')} ${style.bold(`${input.from} to ${input.to}`)}\n`,
    table(rows.map(([name, value]) => [style.dim(name!), value!])),
    style.bold('Bytes per link of the planned topology'),
    table(links, { right: [1] }),
  ].join('\n');
}

function predicted({ seconds, lowerBoundSeconds, bottleneck }: Prediction): string {
  if (bottleneck === undefined) return '0 ms';
  const { rank, direction, link, bytes } = bottleneck;
  const limit = `rank ${rank} ${direction} ${bytesText(bytes)} over ${link}`;
  return `${timeText(seconds * 1000)} on the planned topology, at least ${timeText(lowerBoundSeconds * 1000)}; ${limit}`;
}
