// SPDX-License-Identifier: Apache-2.0
// A command's definitions as Node's parser takes them, to see each word of a command line before citty does.

import type { ArgsDef } from 'citty';

/** An option for `parseArgs` of `node:util`. */
export interface ParseOption {
  readonly type: 'boolean' | 'string';
  readonly short?: string;
}

export function parseOptions(definitions: ArgsDef): Record<string, ParseOption> {
  return Object.fromEntries(
    Object.entries(definitions).map(([name, definition]): [string, ParseOption] => {
      const type = definition.type === 'boolean' ? 'boolean' : 'string';
      const alias = 'alias' in definition ? definition.alias : undefined;
      return [name, typeof alias === 'string' && alias.length === 1 ? { type, short: alias } : { type }];
    }),
  );
}
