// SPDX-License-Identifier: Apache-2.0
// What `nccl-ext plan ep` tells a person.

import { linkClasses } from '@nccl-ext/core';
import type { Style } from '../output/style.js';
import { table } from '../output/table.js';
import { bytesText, countText, ratioText, timeText } from '../output/units.js';
import { maxAndMean } from './max-and-mean.js';
import type { PassBound } from './pass-bound.js';
import type { EpPlanFacts } from './plan-ep.js';

export function epPlanText(facts: EpPlanFacts, style: Style): string {
  const { input, balance, received, rowBytes, bytesByLink, memory, bounds } = facts;
  const { config, ranks, layout, alignment, quantization, routing, topkIdx } = input;
  const { topK, hidden, dtype } = config;
  const tokens = topkIdx.reduce((sum, ids) => sum + ids.length / topK, 0);
  const buffers = memory.layouts[layout];
  const budget =
    config.receiveBudget === undefined || config.receiveBudget === 'eager' ? undefined : config.receiveBudget;
  const over = budget === undefined ? 0 : received.filter((rows) => rows > budget).length;
  const aligned = layout === 'packed' ? `, zones of ${alignment}` : '';
  const rows: [string, string][] = [
    ['layer', `${countText(balance.expert.load.length, 'expert')}, top-${topK}, rows of ${hidden} ${dtype}`],
    ['ranks', countText(ranks, 'rank')],
    [
      'routing',
      `${routing}: ${countText(tokens, 'token')}, ${countText(balance.entries - balance.dropped, 'entry', 'entries')}`,
    ],
    ['layout', `${layout}${aligned}`],
    ['received rows', spreadText(received, 'per rank')],
    ['tokens', spreadText(balance.rows.load, 'per rank')],
    ['entries', spreadText(balance.physical.load, 'per expert')],
    [
      'row',
      `${bytesText(rowBytes.dispatch)} to experts${quantization === 'none' ? '' : ` (${quantization})`}, ${bytesText(rowBytes.combine)} back`,
    ],
    ['dispatch at least', boundText(bounds.dispatch)],
    ['combine at least', boundText(bounds.combine)],
  ];
  if (budget !== undefined && (layout === 'flat' || layout === 'packed'))
    rows.push([
      'budget',
      over === 0
        ? `${countText(budget, 'row')} suffice`
        : `${countText(budget, 'row')}; ${countText(over, 'rank')} would receive more`,
    ]);
  const links = linkClasses
    .filter((name) => bytesByLink.dispatch[name] > 0)
    .map((name) => [name, bytesText(bytesByLink.dispatch[name]), bytesText(bytesByLink.combine[name])]);
  const purposes = [
    ['group', bytesText(memory.group.bytes)],
    ['per handle', bytesText(memory.handle.bytes)],
    [`buffers of ${layout}, ${countText(buffers.rows, 'row')}`, bytesText(buffers.bytes)],
  ];
  return [
    `${style.green('planned')} ${style.bold(`one step on ${countText(ranks, 'rank')}`)}\n`,
    table(rows.map(([name, value]) => [style.dim(name), value])),
    style.bold('Bytes per link of the planned topology, all ranks together'),
    table([['', 'dispatch', 'combine'].map(style.dim), ...links], { right: [1, 2] }),
    style.bold('Memory per rank, at most'),
    table(purposes, { right: [1] }),
  ].join('\n');
}

function spreadText(load: Float64Array, each: string): string {
  const { max, mean, maxOverMean } = maxAndMean(load);
  const average = Number.isInteger(mean) ? mean.toLocaleString('en-US') : mean.toFixed(1);
  return `${max.toLocaleString('en-US')} ${each} at most, ${average} on average (${ratioText(maxOverMean)})`;
}

function boundText({ seconds, rank, what, link, bytes }: PassBound): string {
  if (bytes === 0) return '0 ms';
  const over = what === 'memory' ? 'in one pass over memory' : `over ${link}`;
  const verb = what === 'memory' ? 'moves' : what;
  return `${timeText(seconds * 1000)}; rank ${rank} ${verb} ${bytesText(bytes)} ${over}`;
}
