// SPDX-License-Identifier: Apache-2.0
// The mark before each line of a rank; on a terminal, neighbours differ in colour.

import type { Style } from '../output/style.js';

export function rankPrefix(rank: number, style: Style): string {
  const mark = `[${rank}]`;
  return `${rank % 2 === 0 ? style.green(mark) : style.yellow(mark)} `;
}
