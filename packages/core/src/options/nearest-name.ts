// SPDX-License-Identifier: Apache-2.0
// "Did you mean": the known name that a misspelt one most likely stands for.

/** The candidate with the fewest edits from `name`; undefined when more than a third of the letters differ. */
export function nearestName(name: string, candidates: readonly string[]): string | undefined {
  let nearest: string | undefined;
  let fewest = Math.floor(name.length / 3) + 1;
  for (const candidate of candidates) {
    const edits = editDistance(name, candidate);
    if (edits < fewest) {
      nearest = candidate;
      fewest = edits;
    }
  }
  return nearest;
}

// Optimal string alignment by rows: insertions, deletions, substitutions and swaps of neighbours cost 1.
function editDistance(from: string, to: string): number {
  let before: number[] = [];
  let row = Array.from({ length: to.length + 1 }, (_, j) => j);
  for (let i = 1; i <= from.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= to.length; j += 1) {
      const substitute = row[j - 1]! + (from[i - 1] === to[j - 1] ? 0 : 1);
      const swapped = i > 1 && j > 1 && from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1];
      const swap = swapped ? before[j - 2]! + 1 : substitute;
      next.push(Math.min(substitute, swap, row[j]! + 1, next[j - 1]! + 1));
    }
    [before, row] = [row, next];
  }
  return row[to.length]!;
}
