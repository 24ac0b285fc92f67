// SPDX-License-Identifier: Apache-2.0
// Where an installed NCCL lies, so that the backends find it: native/nccl/search.cc looks at the same paths.

import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import type { NcclPin } from './pins.js';

type Environment = Readonly<Record<string, string | undefined>>;

/** The folder of one build of NCCL in the user's cache. */
export function ncclFolder({ cuda, version }: NcclPin, env: Environment): string {
  const cache = env.XDG_CACHE_HOME || join(env.HOME || homedir(), '.cache');
  return resolve(cache, 'nccl-ext', 'toolkits', `nccl-cu${cuda}-${version}`);
}

/** The library in the folder of {@link ncclFolder}. */
export function libraryOf(folder: string): string {
  return join(folder, 'lib', 'libnccl.so.2');
}

/** Wheels list their files with sums in this folder, and keep their licences in it. */
export function wheelFactsOf(folder: string, { name, version }: NcclPin): string {
  return join(folder, `${name.replaceAll('-', '_')}-${version}.dist-info`);
}

/** The variable that is set and makes backends use another NCCL than the one in the cache. */
export function earlierChoice(env: Environment): string | undefined {
  return ['NCCL_EXT_NCCL_LIBRARY', 'NCCL_HOME'].find((name) => env[name]);
}
