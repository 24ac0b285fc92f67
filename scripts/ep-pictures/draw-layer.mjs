// Draws dispatch and combine as one picture: tokens to experts, results to sums.

import { experts, ranks, routing } from './routing.mjs';
import { inputOf } from './run-layer.mjs';
import { element, label, margin, picture, tokenBox } from './shapes.mjs';

const columns = { tokens: 100, experts: 372, results: 620 };
const [boxHeight, step, top] = [26, 34, 112];
const [tokenWidth, expertWidth, resultWidth] = [88, 88, 100];

/** `results[rank][token]`: what combine gave. */
export function drawLayer(results) {
  const tokens = routing.flatMap((batch, source) =>
    batch.map((entry, token) => ({ ...entry, source, token })),
  );
  const yOf = new Map();
  let y = top;
  for (const { source, token } of tokens) {
    if (token === 0 && source > 0) y += 14;
    yOf.set(`${source}.${token}`, y);
    y += step;
  }
  const bottom = y;
  const expertStep = (bottom - top - 14 * (ranks - 1)) / experts;
  const expertY = (e) =>
    top + e * expertStep + 14 * Math.floor(e / (experts / ranks)) + (expertStep - boxHeight) / 2;
  const [lines, boxes] = [[], []];
  for (const { source, token, ids, weights } of tokens) {
    const at = yOf.get(`${source}.${token}`);
    for (const [k, e] of ids.entries()) {
      if (e < 0) continue;
      lines.push(curve(columns.tokens + tokenWidth, at, columns.experts, expertY(e), source, weights[k]));
      lines.push(curve(columns.experts + expertWidth, expertY(e), columns.results, at, source, weights[k]));
    }
    const size = { y: at, height: boxHeight, source };
    boxes.push(
      ...tokenBox({
        ...size,
        x: columns.tokens,
        width: tokenWidth,
        text: `t${token}: x = ${inputOf(source, token)}`,
      }),
    );
    boxes.push(
      ...tokenBox({ ...size, x: columns.results, width: resultWidth, text: `y = ${results[source][token]}` }),
    );
    if (token === 0) boxes.push(label(columns.tokens - 12, at + 17, `rank ${source}`, 'strong end'));
  }
  for (let e = 0; e < experts; e++) {
    const box = {
      x: columns.experts,
      y: expertY(e),
      width: expertWidth,
      height: boxHeight,
      rx: 13,
      class: 'empty',
    };
    boxes.push(element('rect', box), element('rect', { ...box, class: 'frame' }));
    boxes.push(
      label(columns.experts + expertWidth / 2, expertY(e) + 17, `expert ${e}: ${e + 1} x`, 'middle small'),
    );
    if (e % (experts / ranks) === 0)
      boxes.push(
        label(
          columns.experts + expertWidth / 2,
          expertY(e) - 6,
          `rank ${e / (experts / ranks)}`,
          'middle muted small',
        ),
      );
  }
  const heads = [
    label((columns.tokens + tokenWidth + columns.experts) / 2, 88, 'dispatch', 'middle strong'),
    label((columns.experts + expertWidth + columns.results) / 2, 88, 'combine', 'middle strong'),
  ];
  const foot = [
    'A line is an entry of the router; thick lines have larger weights, and y is the sum of weight x what the expert made of x.',
    'Nobody wants expert 2; t1 of rank 1 wants one expert only. In flat and rank-major, a token that two experts of a rank want is one row there.',
  ].map((text, line) => label(margin, bottom + 22 + 18 * line, text, 'muted small'));
  return picture({
    ...{ width: columns.results + resultWidth + margin + 40, height: bottom + 60 },
    title: 'Dispatch and combine',
    subtitle: 'tokens to the ranks of their experts, and back as weighted sums',
    body: [...heads, ...lines, ...boxes, ...foot],
  });
}

function curve(x1, y1, x2, y2, source, weight) {
  const [from, to, bend] = [y1 + boxHeight / 2, y2 + boxHeight / 2, (x2 - x1) / 2];
  const d = `M${x1} ${from.toFixed(1)}C${x1 + bend} ${from.toFixed(1)} ${x2 - bend} ${to.toFixed(1)} ${x2} ${to.toFixed(1)}`;
  return element('path', { d, class: `line line${source}`, 'stroke-width': 1 + 3 * weight });
}
