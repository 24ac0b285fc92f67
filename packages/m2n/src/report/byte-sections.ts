// SPDX-License-Identifier: Apache-2.0
// Bytes per class of link and per rank.

import { linkClasses } from '@nccl-ext/core';
import type { TransferPlan } from '../plan/transfer-plan.js';
import type { RefitResult } from '../refit/refit-result.js';
import { formatBytes, formatPercent, threeDigits } from './format.js';
import { type Html, html } from './html.js';
import type { RankTraffic } from './rank-traffic.js';

/** More bars than this are no picture; the rest is left to the plan. */
const maxBars = 64;

export function byteSections({ plan, backend }: RefitResult, traffic: RankTraffic): Html {
  return html`${linkSection(plan, backend)}${rankSection(plan, traffic)}`;
}

function linkSection({ totals, topology }: TransferPlan, backend: string): Html {
  const { bytesByLink } = totals;
  const whole = linkClasses.reduce((sum, name) => sum + bytesByLink[name], 0);
  const rows = linkClasses
    .filter((name) => bytesByLink[name] > 0)
    .map(
      (name) => html`<tr><td>${name}</td><td class="n">${formatBytes(bytesByLink[name])}</td>
<td class="n">${formatPercent(bytesByLink[name], whole)}</td><td class="n">${threeDigits(topology.links[name].bandwidthGBps)} GB/s</td>
<td class="n">${threeDigits(topology.links[name].latencyUs)} us</td></tr>`,
    );
  const domains =
    totals.interDomainLowerBoundBytes > 0
      ? `${formatBytes(totals.interDomainBytes)} cross NVLink domains; at least ${formatBytes(totals.interDomainLowerBoundBytes)} must.`
      : 'Nothing has to cross NVLink domains.';
  const ran =
    backend === 'embedded'
      ? 'This run used none of these links: its ranks were threads of one process.'
      : 'Bandwidths and latencies are nominal, not those of this run.';
  return html`<section><h2>Bytes per link <small>of the planned topology</small></h2><div class="scroll"><table>
<thead><tr><th>link</th><th class="n">bytes</th><th class="n">share</th><th class="n">nominal bandwidth per rank</th><th class="n">latency</th></tr></thead>
<tbody>${rows}</tbody></table></div><p class="note">${domains} ${ran}</p></section>`;
}

function rankSection({ totals }: TransferPlan, { sent, received, local }: RankTraffic): Html {
  const ranks = Array.from(sent.keys()).filter((rank) => sent[rank]! + received[rank]! + local[rank]! > 0);
  const shown = ranks.slice(0, maxBars);
  const most = Math.max(...ranks.map((rank) => Math.max(sent[rank]!, received[rank]!, local[rank]!)), 1);
  const bar = (kind: string, bytes: number): Html =>
    bytes === 0
      ? html``
      : html`<div class="bar"><span class="b-${kind}" style="width:${((100 * bytes) / most).toFixed(2)}%"></span><small>${formatBytes(bytes)}</small></div>`;
  const rows = shown.map(
    (rank) =>
      html`<tr><th>rank ${rank}</th><td>${bar('sent', sent[rank]!)}${bar('received', received[rank]!)}${bar('local', local[rank]!)}</td></tr>`,
  );
  const left = ranks.length - shown.length;
  return html`<section><h2>Bytes per rank</h2>
<ul class="legend"><li><i class="b-sent"></i>sent</li><li><i class="b-received"></i>received</li><li><i class="b-local"></i>copied within the rank</li></ul>
<table class="bars">${rows}</table>
<p class="note">A source rank sends ${formatBytes(totals.meanRankBytes)} on average and ${formatBytes(totals.maxRankBytes)} at most.${left > 0 ? ` ${left} more ranks are not shown.` : ''}</p></section>`;
}
