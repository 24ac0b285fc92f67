// SPDX-License-Identifier: Apache-2.0
// Aligned columns of text.

import { stripVTControlCharacters } from 'node:util';

export interface TableOptions {
  /** Columns whose cells end at the same place, such as numbers. */
  readonly right?: readonly number[];
  /** Spaces before each line; default 2. */
  readonly indent?: number;
}

/** Lines of `rows`, columns two spaces apart. Cells may be styled. */
export function table(rows: readonly (readonly string[])[], options: TableOptions = {}): string {
  const { right = [], indent = 2 } = options;
  const widths: number[] = [];
  for (const row of rows) {
    for (const [column, cell] of row.entries()) {
      widths[column] = Math.max(widths[column] ?? 0, widthOf(cell));
    }
  }
  const line = (row: readonly string[]): string =>
    row
      .map((cell, column) => {
        const padding = ' '.repeat(widths[column]! - widthOf(cell));
        return right.includes(column) ? padding + cell : cell + padding;
      })
      .join('  ')
      .trimEnd();
  return rows.map((row) => `${' '.repeat(indent)}${line(row)}\n`).join('');
}

function widthOf(cell: string): number {
  return stripVTControlCharacters(cell).length;
}
