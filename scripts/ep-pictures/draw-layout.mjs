// Draws what each rank holds after a dispatch in one layout: slabs or zones, rows in their order, and what lies between them.

import { routing } from './routing.mjs';
import { element, emptyBox, label, legend, margin, picture, tokenBox } from './shapes.mjs';

const [cellWidth, cellHeight, gap] = [38, 30, 4];
const [top, lineHeight] = [104, 48];
const left = 330;
/** From the frame of a panel to its rows: the rank and the names of its slabs. */
const inset = 146;

/** `title` and `subtitle` say what the layout is; `linesOf(rank, result)` are its slabs: { name, rows, note, zones }, top to bottom. */
export function drawLayout({ title, subtitle, results, linesOf, kinds }) {
  const panels = results.map((result, rank) => linesOf(rank, result));
  const most = Math.max(...panels.flat().map(({ rows }) => rows.length));
  const width = Math.max(left + most * (cellWidth + gap) + 130, 720);
  const body = [label(margin, top - 16, 'tokens and their experts', 'muted')];
  body.push(label(left, top - 16, 'rows that each rank receives', 'muted'));
  let y = top;
  for (const [rank, lines] of panels.entries()) {
    const height = Math.max(lines.length * lineHeight, routing[rank].length * 30) + 14;
    body.push(...drawTokens(rank, y), ...drawPanel(rank, lines, y, width, height));
    y += height + 12;
  }
  body.push(...legend(margin, y + 6, kinds));
  return picture({ width, height: y + 40, title, subtitle, body });
}

function drawTokens(rank, y) {
  return routing[rank].flatMap(({ ids }, token) => {
    const at = y + 10 + token * 30;
    const text = `to ${ids.map((id) => (id < 0 ? 'none' : id)).join(' and ')}`;
    return [
      ...tokenBox({ x: margin, y: at, width: 34, height: 24, source: rank, text: `t${token}` }),
      label(margin + 42, at + 16, text, ''),
    ];
  });
}

function drawPanel(rank, lines, y, width, height) {
  const frame = { class: 'frame', x: left - inset, y, width: width - left + inset - margin, height, rx: 4 };
  const out = [element('rect', frame), label(left - inset + 10, y + 20, `rank ${rank}`, 'strong')];
  const first = y + (height - (lines.length - 1) * lineHeight - cellHeight) / 2;
  for (const [index, { name, rows, note, zones = [] }] of lines.entries()) {
    const at = first + index * lineHeight;
    out.push(label(left - 8, at + 20, name, 'muted end'));
    for (const [column, row] of rows.entries())
      out.push(...drawRow(row, left + column * (cellWidth + gap), at));
    out.push(label(left + rows.length * (cellWidth + gap) + 6, at + 20, note, 'muted'));
    for (const zone of zones)
      out.push(label(left + zone.first * (cellWidth + gap), at + cellHeight + 13, zone.text, 'muted small'));
  }
  return out;
}

function drawRow({ kind, source, token, experts }, x, y) {
  const box = { x, y, width: cellWidth, height: cellHeight };
  if (kind !== 'token') return [emptyBox({ ...box, kind })];
  const ids = experts.join(', ');
  const hint = `token ${token} of rank ${source}${ids === '' ? '' : ` for expert ${ids}`}`;
  return tokenBox({ ...box, source, text: `t${token}`, ids: ids === '' ? '' : `e ${ids}`, hint });
}
