// SPDX-License-Identifier: Apache-2.0
// Moves a wanted cut to a place where a cell may be cut.

import type { Granule } from './move-shape.js';

/**
 * The place nearest to `position` on a line of cells of `elements` each: a boundary between cells when one is within
 * `tolerance`, else inside the cell, where rows and the alignment allow it. All in elements.
 */
export function cutPosition(
  position: number,
  elements: number,
  tolerance: number,
  granule: () => Granule,
): number {
  const cell = Math.floor(position / elements);
  const inside = position - cell * elements;
  if (inside <= tolerance && inside <= elements - inside) return cell * elements;
  if (elements - inside <= tolerance) return (cell + 1) * elements;
  const { unit, row } = granule();
  const rowStart = Math.floor(inside / row) * row;
  const inRow = Math.min(row, Math.round((inside - rowStart) / unit) * unit);
  return cell * elements + Math.min(elements, rowStart + inRow);
}
