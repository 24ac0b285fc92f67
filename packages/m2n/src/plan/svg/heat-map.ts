// SPDX-License-Identifier: Apache-2.0
// Draws who sends what to whom: a row per sender, a column per receiver, darker for more bytes.

import { bytesText } from '../explain/explanation-text.js';
import type { PlanExplanation } from '../explain/plan-explanation.js';
import { element, escapeXml, label } from './element.js';
import { headHeight, margin, page } from './page.js';

const gutter = 64;
const largestMap = 640;

export function heatMap({ matrix, ranksPerRow, totals, worldSize, prediction }: PlanExplanation): string {
  const rows = matrix.length;
  const cell = Math.max(8, Math.min(36, Math.floor(largestMap / rows)));
  const size = cell * rows;
  const left = margin + gutter;
  const top = headHeight + 34;
  const most = matrix.reduce((max, row) => row.reduce((inner, bytes) => Math.max(inner, bytes), max), 0);
  const name = (row: number): string => {
    const first = row * ranksPerRow;
    const last = Math.min(worldSize, first + ranksPerRow) - 1;
    return first === last ? `${first}` : `${first}-${last}`;
  };
  const body: string[] = [];
  const every = Math.ceil(rows / Math.floor(size / 26));
  for (let row = 0; row < rows; row++) {
    if (row % every !== 0) continue;
    const at = (row + 0.5) * cell;
    body.push(label(left - 6, top + at + 4, name(row), 'muted end'));
    const across =
      ranksPerRow === 1
        ? label(left + at, top - 6, name(row), 'muted middle')
        : upright(left + at + 4, top - 6, name(row));
    body.push(across);
  }
  body.push(element('rect', { class: 'empty', x: left, y: top, width: size, height: size }));
  matrix.forEach((columns, row) => {
    columns.forEach((bytes, column) => {
      if (bytes === 0) return;
      const title = element('title', {}, [escapeXml(`${name(row)} to ${name(column)}: ${bytesText(bytes)}`)]);
      const box = { x: left + column * cell, y: top + row * cell, width: cell, height: cell };
      body.push(element('rect', { class: 'heat tile', ...box, 'fill-opacity': shade(bytes, most) }, [title]));
    });
  });
  body.push(element('rect', { class: 'frame', x: left, y: top, width: size, height: size }));
  const bottom = top + size + 24;
  body.push(label(left, bottom, 'rows send, columns receive; the diagonal is local', 'muted'));
  body.push(...legend(left, bottom + 14, most));
  const width = Math.max(left + size + margin, 560);
  const what = `${bytesText(totals.wireBytes)} between ${worldSize} ranks, ${bytesText(totals.localBytes)} local`;
  const { bottleneck } = prediction;
  const limit = bottleneck
    ? `; limited by what rank ${bottleneck.rank} ${bottleneck.direction} over ${bottleneck.link}`
    : '';
  return page({ width, height: bottom + 58, title: 'Who sends what to whom', subtitle: what + limit, body });
}

/** Square root, so that small flows stay visible beside large ones. */
function shade(bytes: number, most: number): number {
  return 0.08 + 0.92 * Math.sqrt(bytes / most);
}

function upright(x: number, y: number, text: string): string {
  return element('text', { x, y, class: 'muted', transform: `rotate(-60 ${x} ${y})` }, [escapeXml(text)]);
}

function legend(x: number, y: number, most: number): string[] {
  if (most === 0) return [label(x, y + 14, 'nothing moves', 'muted')];
  const steps = 5;
  const out: string[] = [];
  for (let step = 1; step <= steps; step++) {
    const bytes = most * (step / steps) ** 2;
    const at = x + (step - 1) * 96;
    out.push(
      element('rect', { class: 'heat', x: at, y, width: 14, height: 14, 'fill-opacity': shade(bytes, most) }),
    );
    out.push(label(at + 20, y + 12, bytesText(bytes), 'muted'));
  }
  return out;
}
