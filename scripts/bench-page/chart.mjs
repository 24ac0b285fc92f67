// SPDX-License-Identifier: Apache-2.0
// Draws a result of `nccl-ext bench m2n`: achieved over bound, a line for each reshard, by SMs or by size.

import { element, label } from '../../packages/m2n/dist/plan/svg/element.js';
import { headHeight, margin, page } from '../../packages/m2n/dist/plan/svg/page.js';
import { axisOf, distinct } from './settings.mjs';

/** Told apart on light and dark pages. */
const colours = ['#0969da', '#bc4c00', '#1a7f37', '#8250df'];
const plot = { left: margin + 44, top: headHeight + 34, width: 560, height: 260 };
const width = plot.left + plot.width + margin;
const height = plot.top + plot.height + 60;

/** SVG text. */
export function chart({ rows, device, machine, ceiling }, title) {
  const axis = axisOf(rows);
  const places = distinct(rows, axis.of);
  const names = distinct(rows, ({ name }) => name);
  // Above 1 only where copies are slower than the reshard; the page grows with it.
  const top = Math.max(1, Math.ceil(10 * Math.max(...rows.map(({ ofBound }) => ofBound))) / 10);
  const x = (row) => plot.left + ((places.indexOf(axis.of(row)) + 0.5) / places.length) * plot.width;
  const y = (share) => plot.top + (1 - share / top) * plot.height;
  const lines = names.flatMap((name, i) =>
    curve(
      rows.filter((row) => row.name === name).map((row) => ({ x: x(row), y: y(row.ofBound), row })),
      colours[i % colours.length],
    ),
  );
  return page({
    ...{ width, height, title },
    subtitle: `achieved / bound; bound: ${ceiling.how}; ${device?.name ?? machine.cpu}, ${machine.date}`,
    body: [...grid(top, y), ...legend(names), ...axisLabels(axis.name, places), ...lines],
  });
}

function grid(top, y) {
  return Array.from({ length: Math.floor(top * 5) + 1 }, (_, i) => i / 5).flatMap((share) => [
    element('path', { class: 'frame', d: `M${plot.left} ${y(share)}H${plot.left + plot.width}` }),
    label(plot.left - 8, y(share) + 4, `${Math.round(100 * share)} %`, 'end muted'),
  ]);
}

function legend(names) {
  let at = plot.left;
  return names.flatMap((name, i) => {
    const parts = [
      element('circle', { cx: at + 5, cy: headHeight + 10, r: 5, fill: colours[i % colours.length] }),
      label(at + 16, headHeight + 14, name, 'muted'),
    ];
    at += 40 + 6.6 * name.length;
    return parts;
  });
}

function axisLabels(name, places) {
  const bottom = plot.top + plot.height;
  return [
    ...places.map((place, i) =>
      label(plot.left + ((i + 0.5) / places.length) * plot.width, bottom + 20, place, 'middle'),
    ),
    label(plot.left + plot.width / 2, bottom + 42, name, 'middle muted'),
  ];
}

function curve(points, colour) {
  const d = points.map(({ x, y }, i) => `${i === 0 ? 'M' : 'L'}${x.toFixed(1)} ${y.toFixed(1)}`).join('');
  const dots = points.map(({ x, y }) => element('circle', { cx: x, cy: y, r: 3.5, fill: colour }));
  return [element('path', { d, fill: 'none', stroke: colour, 'stroke-width': 2 }), ...dots];
}
