// SPDX-License-Identifier: Apache-2.0
// Cuts one dimension of a parameter over the ranks that share it, in whole heads and in whole quantisation blocks.

/** Half-open, in elements of the dimension. */
export type Interval = readonly [start: number, end: number];

/** What one rank has of a dimension: one interval per segment of a fused tensor, else one; local order is this order. */
export type Share = readonly Interval[];

/** torch.chunk over units of `unit` elements: shares of ceil(units / parts) units, the last ones short or empty. */
export function chunk(extent: number, parts: number, unit = 1): readonly Interval[] {
  const size = Math.ceil(Math.ceil(extent / unit) / parts) * unit;
  return Array.from({ length: parts }, (_, i) => [
    Math.min(i * size, extent),
    Math.min((i + 1) * size, extent),
  ]);
}

/** What each rank has of the heads of grouped attention. */
interface HeadShares {
  readonly query: readonly Interval[];
  readonly keyValue: readonly Interval[];
}

/**
 * Heads are cut whole. Up to one rank per key and value head, those are chunked and the query heads follow them. Beyond,
 * rank r has head floor(r x kvHeads / parts), and the ranks of one head chunk its query heads.
 */
export function shareHeads(heads: number, kvHeads: number, parts: number): HeadShares {
  const group = heads / kvHeads;
  if (parts <= kvHeads) {
    const keyValue = chunk(kvHeads, parts);
    return { keyValue, query: keyValue.map(([start, end]) => [start * group, end * group]) };
  }
  const query: Interval[] = [];
  const keyValue: Interval[] = [];
  for (let rank = 0; rank < parts; rank++) {
    const head = Math.floor((rank * kvHeads) / parts);
    const first = Math.ceil((head * parts) / kvHeads);
    const sharers = Math.ceil(((head + 1) * parts) / kvHeads) - first;
    const [start, end] = chunk(group, sharers)[rank - first]!;
    query.push([head * group + start, head * group + end]);
    keyValue.push([head, head + 1]);
  }
  return { query, keyValue };
}

/** Units to elements, behind `offset` elements. */
export function scale(intervals: readonly Interval[], unit: number, offset = 0): readonly Interval[] {
  return intervals.map(([start, end]) => [offset + start * unit, offset + end * unit]);
}

/** The blocks that a share touches: what it needs of the scales. An empty share needs none. */
export function blocksOf(share: Share, block: number): Share {
  return share.map(([start, end]) =>
    start === end
      ? [Math.floor(start / block), Math.floor(start / block)]
      : [Math.floor(start / block), Math.ceil(end / block)],
  );
}
