// SPDX-License-Identifier: Apache-2.0
// Order of version numbers such as 2.36 or 580.159.03, where a missing part counts as 0.

/** Whether `version` is `floor` or newer. Both are decimal numbers joined by dots. */
export function atLeast(version: string, floor: string): boolean {
  const have = version.split('.').map(Number);
  const need = floor.split('.').map(Number);
  for (const [index, part] of need.entries()) {
    const difference = (have[index] ?? 0) - part;
    if (difference !== 0) return difference > 0;
  }
  return true;
}
