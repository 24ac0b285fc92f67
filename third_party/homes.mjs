// SPDX-License-Identifier: Apache-2.0
// Where each pinned component is on this machine: an installation that a variable names, or the user's cache folder.

import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { env } from 'node:process';

/** The pinned components by name. */
export const pins = JSON.parse(readFileSync(new URL('pins.json', import.meta.url), 'utf8'));

const cacheFolder = join(env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'nccl-ext');

/** Held by the one process that changes the cache. */
export const lockFile = join(cacheFolder, 'fetch.lock');

/** Archives that have not been unpacked. */
export const downloadsFolder = join(cacheFolder, 'downloads');

/** The variable that overrides a component, and a file that proves it is there. */
const places = {
  'nccl-cu13': { variable: 'NCCL_HOME', proof: 'include/nccl.h' },
  'nccl-cu12': { variable: 'NCCL_HOME', proof: 'include/nccl.h' },
  cuda13: { variable: 'CUDA13_HOME', proof: 'bin/nvcc' },
  cuda12: { variable: 'CUDA12_HOME', proof: 'bin/nvcc' },
  'clang-format': { variable: 'CLANG_FORMAT_HOME', proof: 'bin/clang-format' },
};

/** Raised when layout.mjs makes another layout of the same archives. */
const layoutVersion = 1;

/** What a component in the cache was made from; another pin or another layout makes it anew. */
export function stampOf(name) {
  return createHash('sha256')
    .update(JSON.stringify([layoutVersion, pins[name]]))
    .digest('hex');
}

/** Of every component: its root, what decided it (a variable or `cache`), and whether it is there. */
export function homes() {
  return Object.fromEntries(
    Object.entries(places).map(([name, { variable, proof }]) => {
      const own = env[variable];
      const path = own || join(cacheFolder, 'toolkits', `${name}-${pins[name].version}`);
      const stamp = join(path, '.pin');
      const fresh = own || (existsSync(stamp) && readFileSync(stamp, 'utf8') === stampOf(name));
      return [
        name,
        { path, from: own ? variable : 'cache', present: Boolean(fresh) && existsSync(join(path, proof)) },
      ];
    }),
  );
}
