// SPDX-License-Identifier: Apache-2.0
// Draws how a tensor is cut before and after: the first two dimensions to scale, a colour per set of ranks.

import { bytesText } from '../explain/explanation-text.js';
import type { Atom, Side } from '../side.js';
import { element, escapeXml, label } from './element.js';
import { headHeight, margin, page } from './page.js';

const panelWidth = 340;
const panelHeight = 300;
/** More tiles than this would be thinner than a line. */
const mostTiles = 4096;

interface Rectangle {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

export function tilesOf(name: string, source: Side, destination: Side): string {
  const { shape, dtype, elementBytes } = destination;
  const bytes = shape.reduce((product, extent) => product * extent, elementBytes);
  const cast = source.dtype === dtype ? dtype : `${source.dtype} to ${dtype}`;
  const second = margin + panelWidth + 2 * margin;
  return page({
    width: second + panelWidth + margin,
    height: headHeight + panelHeight + 80,
    title: name,
    subtitle: `[${shape.join(', ')}] ${cast}, ${bytesText(bytes)}${shape.length > 2 ? '; the first two dimensions are drawn' : ''}`,
    body: [...panel(margin, 'before', source), ...panel(second, 'after', destination)],
  });
}

function panel(left: number, when: string, side: Side): string[] {
  const top = headHeight + 26;
  const [rows, columns] = drawnExtents(side.shape);
  const tiles = side.atoms.flatMap((atom) =>
    rectanglesOf(atom, rows, columns).map((rectangle) => ({ atom, rectangle })),
  );
  const shown = tiles.slice(0, mostTiles);
  const body = [
    label(
      left,
      headHeight + 14,
      `${when}: ${side.atoms.length} ${side.atoms.length === 1 ? 'tile' : 'tiles'}`,
      '',
    ),
    element('rect', { class: 'empty', x: left, y: top, width: panelWidth, height: panelHeight }),
  ];
  for (const { atom, rectangle } of shown) {
    const { x, y, width, height } = rectangle;
    const box = {
      x: left + x * panelWidth,
      y: top + y * panelHeight,
      width: width * panelWidth,
      height: height * panelHeight,
    };
    const title = element('title', {}, [
      escapeXml(`${ranksText(atom.ranks, 24)}: ${atom.region.elements} elements`),
    ]);
    body.push(
      element('rect', { class: 'tile', ...box, fill: colour(atom.index, side.atoms.length) }, [title]),
    );
    const text = ranksText(atom.ranks, 4);
    if (box.width > 7 * text.length + 6 && box.height > 15) {
      body.push(label(box.x + box.width / 2, box.y + box.height / 2 + 4, text, 'on'));
    }
  }
  body.push(element('rect', { class: 'frame', x: left, y: top, width: panelWidth, height: panelHeight }));
  const left_out = tiles.length - shown.length;
  const note =
    left_out > 0
      ? `${left_out} more tiles are not drawn`
      : `rows: ${axisText(side.shape, 0)}, columns: ${axisText(side.shape, 1)}`;
  body.push(label(left, top + panelHeight + 20, note, 'muted'));
  return body;
}

function drawnExtents(shape: readonly number[]): readonly [number, number] {
  return shape.length === 1
    ? [1, Math.max(1, shape[0]!)]
    : [Math.max(1, shape[0] ?? 1), Math.max(1, shape[1] ?? 1)];
}

/** Parts of the unit square. A vector is one row. */
function rectanglesOf({ region }: Atom, rows: number, columns: number): Rectangle[] {
  const { dims } = region;
  const vertical = dims.length > 1 ? intervals(dims[0]!) : [[0, rows] as const];
  const across = dims[dims.length > 1 ? 1 : 0];
  const horizontal = across ? intervals(across) : [[0, columns] as const];
  return vertical.flatMap(([y, height]) =>
    horizontal.map(([x, width]) => ({
      x: x / columns,
      y: y / rows,
      width: width / columns,
      height: height / rows,
    })),
  );
}

function intervals({ runs }: Atom['region']['dims'][number]): (readonly [number, number])[] {
  return runs.flatMap(({ start, length, stride, count }) =>
    Array.from({ length: Math.min(count, mostTiles) }, (_, i) => [start + i * stride, length] as const),
  );
}

/** Hues a golden angle apart differ most between neighbours. */
function colour(index: number, count: number): string {
  const hue = count === 1 ? 212 : Math.round((212 + index * 137.508) % 360);
  return `hsl(${hue} 48% 44%)`;
}

function ranksText(ranks: Int32Array, most: number): string {
  const list = [...ranks.subarray(0, most)].join(', ');
  return ranks.length > most ? `${list} + ${ranks.length - most}` : list;
}

function axisText(shape: readonly number[], axis: number): string {
  const d = shape.length === 1 ? axis - 1 : axis;
  return shape[d] === undefined ? '1' : `dimension ${d} (${shape[d]})`;
}
