// SPDX-License-Identifier: Apache-2.0
// Pictures of the plan: who sends what to whom, and how a few tensors are cut before and after.

import type { PlannedTensor, TransferPlan } from '../plan/transfer-plan.js';
import { Html, html } from './html.js';
import { bytesOf, distinct } from './tensor-section.js';

const maxPictures = 4;

export function pictureSections(plan: TransferPlan): Html {
  const pictures = representatives(plan.tensors).map(({ name }) => picture(plan.toSVG({ tensor: name })));
  return html`<section>${picture(plan.toSVG())}</section>
<section><h2>Tensors before and after</h2><div class="figures">${pictures}</div></section>`;
}

/** Pictures have a title of their own; names in them are escaped where they are drawn. */
function picture(svg: string): Html {
  return html`<figure class="picture">${new Html(svg)}</figure>`;
}

/** Of each way in which tensors are cut before and after the largest tensor; the ways with the most bytes first. */
function representatives(tensors: readonly PlannedTensor[]): PlannedTensor[] {
  const ways = new Map<string, { bytes: number; largest: PlannedTensor }>();
  for (const tensor of distinct(tensors)) {
    if (tensor.shape.length === 0) continue;
    const key = wayOf(tensor);
    const way = ways.get(key);
    if (way === undefined) ways.set(key, { bytes: bytesOf(tensor), largest: tensor });
    else {
      way.bytes += bytesOf(tensor);
      if (bytesOf(tensor) > bytesOf(way.largest)) way.largest = tensor;
    }
  }
  return [...ways.values()]
    .toSorted((a, b) => b.bytes - a.bytes)
    .slice(0, maxPictures)
    .map(({ largest }) => largest);
}

/** Which dimensions are cut into how many pieces on which side. */
function wayOf({ shape, sources, destinations }: PlannedTensor): string {
  const cuts = [sources, destinations].map((copies) =>
    copies.map(({ pattern }) =>
      shape.map((_, dim) => new Set(pattern.parts.map((part) => JSON.stringify(part.dims[dim]?.runs))).size),
    ),
  );
  return JSON.stringify(cuts);
}
