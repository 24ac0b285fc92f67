// SPDX-License-Identifier: Apache-2.0
// Finds a key that occurs twice in one JSON object, which JSON.parse hides by keeping the last value.

/** The keys that lead to the first duplicate, itself last; undefined if there is none. `json` must be valid JSON. */
export function findDuplicateKey(json: string): readonly string[] | undefined {
  // One entry per open bracket: the key that is being read and the keys seen; undefined for an array.
  const path: (string | undefined)[] = [];
  const open: (Set<string> | undefined)[] = [];
  for (let i = 0; i < json.length; i++) {
    switch (json.charCodeAt(i)) {
      case openBrace:
        open.push(new Set());
        path.push(undefined);
        break;
      case openBracket:
        open.push(undefined);
        path.push(undefined);
        break;
      case closeBrace:
      case closeBracket:
        open.pop();
        path.pop();
        break;
      case quote: {
        const end = endOfString(json, i);
        const keys = open.at(-1);
        if (keys !== undefined && isFollowedByColon(json, end)) {
          const raw = json.slice(i + 1, end);
          const key = raw.includes('\\') ? (JSON.parse(json.slice(i, end + 1)) as string) : raw;
          path[path.length - 1] = key;
          if (keys.has(key)) return path.filter((part) => part !== undefined);
          keys.add(key);
        }
        i = end;
      }
    }
  }
  return undefined;
}

const quote = 0x22;
const backslash = 0x5c;
const colon = 0x3a;
const openBrace = 0x7b;
const closeBrace = 0x7d;
const openBracket = 0x5b;
const closeBracket = 0x5d;

/** The index of the quote that closes the string opened at `start`. */
function endOfString(json: string, start: number): number {
  for (let i = start + 1; ; i++) {
    const code = json.charCodeAt(i);
    if (code === quote) return i;
    if (code === backslash) i++;
  }
}

/** In valid JSON a string is a key exactly if a colon follows. */
function isFollowedByColon(json: string, end: number): boolean {
  let i = end + 1;
  while (json.charCodeAt(i) <= 0x20) i++;
  return json.charCodeAt(i) === colon;
}
