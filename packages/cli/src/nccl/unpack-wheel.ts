// SPDX-License-Identifier: Apache-2.0
// Takes the library and its licences out of the wheel; headers and device code are for who compiles.

import { mkdir, rename } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { NcclExtError } from '@nccl-ext/core';
import { isIntact } from './intact.js';
import type { NcclPin } from './pins.js';
import { libraryOf, wheelFactsOf } from './places.js';
import { runPython } from './python.js';

export interface Unpacking {
  readonly pin: NcclPin;
  readonly wheel: string;
  /** A folder for this alone. */
  readonly folder: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly signal: AbortSignal;
}

/**
 * The folder below `folder` with what backends need.
 *
 * @throws ERR_VERIFY where the wheel is no wheel of NCCL
 */
export async function unpackWheel({ pin, wheel, folder, env, signal }: Unpacking): Promise<string> {
  const [all, chosen] = [join(folder, 'unpacked'), join(folder, 'chosen')];
  const { ok, said } = await runPython({ module: ['zipfile', '-e', wheel, all], folder, env, signal });
  if (!ok) throw unusable(pin, said);
  await mkdir(dirname(libraryOf(chosen)), { recursive: true });
  try {
    await rename(join(all, 'nvidia', 'nccl', 'lib', 'libnccl.so.2'), libraryOf(chosen));
    await rename(wheelFactsOf(all, pin), wheelFactsOf(chosen, pin));
  } catch (cause) {
    throw unusable(pin, (cause as Error).message);
  }
  if (!(await isIntact(chosen, pin, signal))) throw unusable(pin, 'the library is not the one of its RECORD');
  return chosen;
}

function unusable({ file }: NcclPin, said: string): NcclExtError {
  return new NcclExtError('ERR_VERIFY', `${file} cannot be unpacked: ${said}`, {
    help: 'See that the cache folder has 600 MB free, then run it again.',
  });
}
