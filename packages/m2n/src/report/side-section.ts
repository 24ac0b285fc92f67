// SPDX-License-Identifier: Apache-2.0
// Both sides beside each other: the layout as it was asked for, its ranks, and what each of them holds.

import type { HeldTensor, TransferPlan } from '../plan/transfer-plan.js';
import { formatBytes, formatCount, formatRanks } from './format.js';
import { type Html, html } from './html.js';

export function sideSection(
  plan: TransferPlan,
  { from, to }: { readonly from: string; readonly to: string },
): Html {
  const ranks = Array.from({ length: plan.worldSize }, (_, rank) => rank);
  const source = ranks.map((rank) => plan.sourceTensorsOf(rank));
  const destination = ranks.map((rank) => plan.destinationTensorsOf(rank));
  return html`<section class="sides">${side('From', from, source)}<span class="arrow" aria-hidden="true">→</span>${side('To', to, destination)}</section>`;
}

function side(title: string, layout: string, held: readonly (readonly HeldTensor[])[]): Html {
  const holders = held.flatMap((tensors, rank) => (tensors.length > 0 ? [rank] : []));
  const bytes = holders.map((rank) => storageBytes(held[rank]!));
  const tensors = holders.map((rank) => held[rank]!.length);
  return html`<div class="card"><h2>${title} <code>${layout}</code></h2><dl>
<dt>Ranks</dt><dd>${formatCount(holders.length)} <small>(${formatRanks(holders)})</small></dd>
<dt>Tensors per rank</dt><dd>${span(tensors, formatCount)}</dd>
<dt>Bytes per rank</dt><dd>${span(bytes, formatBytes)}</dd>
<dt>Bytes on all ranks</dt><dd>${formatBytes(bytes.reduce((sum, one) => sum + one, 0))}</dd>
</dl></div>`;
}

function span(values: readonly number[], format: (value: number) => string): string {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  if (values.length === 0) return 'none';
  return low === high ? format(low) : `${format(low)} to ${format(high)}`;
}

/** Tensors that share a storage count once. */
function storageBytes(tensors: readonly HeldTensor[]): number {
  const sizes = new Map<string, number>();
  for (const { storage, requiredBytes } of tensors) {
    sizes.set(storage, Math.max(sizes.get(storage) ?? 0, requiredBytes));
  }
  return [...sizes.values()].reduce((sum, size) => sum + size, 0);
}
