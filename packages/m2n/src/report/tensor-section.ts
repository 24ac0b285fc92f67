// SPDX-License-Identifier: Apache-2.0
// The tensors that make up most of the bytes.

import { dtypeBytes } from '@nccl-ext/core';
import type { SideCopy } from '../plan/plan-request.js';
import type { PlannedTensor, TransferPlan } from '../plan/transfer-plan.js';
import { formatBytes, formatCount, formatPercent } from './format.js';
import { type Html, html } from './html.js';

const maxRows = 20;

export function tensorSection(plan: TransferPlan): Html {
  const tensors = distinct(plan.tensors);
  const whole = tensors.reduce((sum, tensor) => sum + bytesOf(tensor), 0);
  const largest = tensors.toSorted((a, b) => bytesOf(b) - bytesOf(a)).slice(0, maxRows);
  const rows = largest.map(
    (
      tensor,
    ) => html`<tr><td><code>${tensor.name}</code></td><td class="n">${tensor.shape.join(' x ') || 'scalar'}</td>
<td>${dtypeOf(tensor)}</td><td class="n">${formatBytes(bytesOf(tensor))}</td><td class="n">${formatPercent(bytesOf(tensor), whole)}</td>
<td class="n">${partsOf(tensor.sources)}</td><td class="n">${partsOf(tensor.destinations)}</td></tr>`,
  );
  return html`<section><h2>Largest tensors <small>${formatCount(largest.length)} of ${formatCount(tensors.length)}</small></h2><div class="scroll"><table>
<thead><tr><th>tensor</th><th class="n">shape</th><th>dtype</th><th class="n">bytes</th><th class="n">share</th><th class="n">before</th><th class="n">after</th></tr></thead>
<tbody>${rows}</tbody></table></div><p class="note">Before and after: distinct parts x replicas of each.</p></section>`;
}

/** One entry per requested tensor, whatever its storages. */
export function distinct(tensors: readonly PlannedTensor[]): PlannedTensor[] {
  return [...new Map(tensors.map((tensor) => [tensor.request, tensor])).values()];
}

/** At the destination. */
export function bytesOf({ shape, destinationDType }: PlannedTensor): number {
  return shape.reduce((product, extent) => product * extent, dtypeBytes(destinationDType));
}

function dtypeOf({ sourceDType, destinationDType }: PlannedTensor): string {
  return sourceDType === destinationDType ? sourceDType : `${sourceDType} to ${destinationDType}`;
}

/** As in `4 x 2`: four distinct parts, each on two ranks. */
function partsOf(copies: readonly SideCopy[]): string {
  const parts = copies.flatMap(({ pattern }) => pattern.parts);
  const replicas = [...new Set(parts.map(({ ranks }) => ranks.length))].sort((a, b) => a - b);
  return `${formatCount(parts.length)} x ${replicas.join('/')}`;
}
