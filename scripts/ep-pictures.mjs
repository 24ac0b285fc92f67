// Draws the layouts of expert parallelism for docs/ep.md, from what the embedded backend really puts where.

import { drawLayer } from './ep-pictures/draw-layer.mjs';
import { drawLayout } from './ep-pictures/draw-layout.mjs';
import { alignment, most, ranks } from './ep-pictures/routing.mjs';
import { runLayer } from './ep-pictures/run-layer.mjs';
import { runLayout } from './ep-pictures/run-layout.mjs';

const sources = Array.from({ length: ranks }, (_, rank) => ({ text: `from rank ${rank}`, source: rank }));
const unwritten = { text: 'not written', kind: 'unwritten' };
const padding = { text: 'padding, zero', kind: 'padding' };

const layouts = {
  'expert-major': {
    title: 'expert-major [L, R x M, H]',
    subtitle:
      'low latency: a slab of fixed size for each local expert; expertCounts says how much of it is there',
    kinds: [...sources, unwritten],
    linesOf: (_, { rows, localExperts, expertCounts }) =>
      localExperts.map((expert, local) => ({
        name: `expert ${expert}`,
        rows: rows.slice(local * ranks * most, (local + 1) * ranks * most),
        note: `count ${expertCounts[local]}`,
      })),
  },
  'rank-major': {
    title: 'rank-major [R, M, H]',
    subtitle: 'low latency: a slab of fixed size for each source rank; every row names its experts (e)',
    kinds: [...sources, unwritten],
    linesOf: (_, { rows, sourceCounts }) =>
      sourceCounts.map((count, source) => ({
        name: `from rank ${source}`,
        rows: rows.slice(source * most, (source + 1) * most),
        note: `count ${count}`,
      })),
  },
  flat: {
    title: 'flat [N, H]',
    subtitle:
      'high throughput: each token once, in order of source rank and token; every row names its experts (e)',
    kinds: sources,
    linesOf: (_, { rows, total }) => [{ name: 'rows', rows, note: `total ${total[0]}` }],
  },
  packed: {
    title: `packed [N, H], alignment ${alignment}`,
    subtitle: `high throughput: a zone for each local expert that has rows, padded to a multiple of ${alignment}`,
    kinds: [...sources, padding],
    linesOf: (_, { rows, total, localExperts, expertCounts, expertOffsets }) => {
      const zones = localExperts.map((expert, local) => {
        const [first, count] = [expertOffsets[local], expertCounts[local]];
        return { first, count, text: `expert ${expert}: offset ${first}, count ${count}` };
      });
      const filled = zones.filter(({ count }) => count > 0);
      return [{ name: 'rows', rows, note: `total ${total[0]}`, zones: filled }];
    },
  },
};

/** Rows { path, content } of all pictures. */
export async function epPictures() {
  const pictures = [{ path: 'docs/pictures/ep-layer.svg', content: drawLayer(await runLayer()) }];
  for (const [layout, design] of Object.entries(layouts)) {
    const content = drawLayout({ ...design, results: await runLayout(layout) });
    pictures.push({ path: `docs/pictures/ep-${layout}.svg`, content });
  }
  return pictures;
}
