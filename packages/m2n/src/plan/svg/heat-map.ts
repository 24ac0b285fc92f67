// SPDX-License-Identifier: Apache-2.0
// Draws who sends what to whom: a row per sender, a column per receiver, darker for more bytes.

import { bytesText } from '../explain/explanation-text.js';
import type { PlanExplanation } from '../explain/plan-explanation.js';
import { element, escapeXml, label } from './element.js';
import { headHeight, margin, page } from './page.js';

const largestMap = 640;
/** No digit of the fonts in use is wider, in pixels. */
const digitWidth = 7.5;

export function heatMap({ matrix, ranksPerRow, totals, worldSize, prediction }: PlanExplanation): string {
  const rows = matrix.length;
  const cell = Math.max(8, Math.min(36, Math.floor(largestMap / rows)));
  const size = cell * rows;
  const most = matrix.reduce((max, row) => row.reduce((inner, bytes) => Math.max(inner, bytes), max), 0);
  const name = (row: number): string => {
    const first = row * ranksPerRow;
    const last = Math.min(worldSize, first + ranksPerRow) - 1;
    return first === last ? `${first}` : `${first}-${last}`;
  };
  const widest = Math.ceil(digitWidth * Math.max(...matrix.map((_, row) => name(row).length)));
  const left = margin + widest + 6;
  const top = headHeight + 34;
  const { bottleneck } = prediction;
  const body: string[] = [];
  if (bottleneck !== undefined) {
    const { rank, direction, link } = bottleneck;
    const limit = `on the planned topology, limited by what rank ${rank} ${direction} over ${link}`;
    body.push(label(margin, headHeight + 4, limit, 'muted'));
  }
  for (const row of every(Math.ceil(26 / cell), rows)) {
    body.push(label(left - 6, top + (row + 0.5) * cell + 4, name(row), 'muted end'));
  }
  for (const column of every(Math.ceil((widest + 10) / cell), rows)) {
    body.push(label(left + (column + 0.5) * cell, top - 6, name(column), 'muted middle'));
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
  const scale = ranksPerRow === 1 ? 'the diagonal is local' : `each stands for ${ranksPerRow} ranks`;
  body.push(label(left, bottom, `rows send, columns receive; ${scale}`, 'muted'));
  body.push(...legend(left, bottom + 14, most));
  const width = Math.max(left + size + Math.max(margin, Math.ceil(widest / 2)), 560);
  const subtitle = `${bytesText(totals.wireBytes)} between ${worldSize} ranks, ${bytesText(totals.localBytes)} local`;
  return page({ width, height: bottom + 58, title: 'Who sends what to whom', subtitle, body });
}

/** 0, step, 2 step, ... below `end`: the rows or columns whose labels do not overlap. */
function every(step: number, end: number): number[] {
  return Array.from({ length: Math.ceil(end / step) }, (_, index) => index * step);
}

/** Square root, so that small flows stay visible beside large ones. */
function shade(bytes: number, most: number): number {
  return 0.08 + 0.92 * Math.sqrt(bytes / most);
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
