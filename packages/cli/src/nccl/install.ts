// SPDX-License-Identifier: Apache-2.0
// Puts NCCL into the user's cache whole or not at all: brought, checked and unpacked beside its place, then renamed.

import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { checkWheel } from './check-wheel.js';
import { downloadWheel } from './download-wheel.js';
import { isIntact } from './intact.js';
import type { NcclPin } from './pins.js';
import { libraryOf, ncclFolder } from './places.js';
import { unpackWheel } from './unpack-wheel.js';

export interface Installation {
  readonly pin: NcclPin;
  /** A wheel that is here already; else pip brings it. */
  readonly file: string | undefined;
  /** For pip, instead of its configuration. */
  readonly indexUrl: string | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly signal: AbortSignal;
  /** Told what happens now. */
  say(text: string): void;
}

export interface Installed {
  /** The path of libnccl.so.2. */
  readonly library: string;
  /** True: it was there and whole, and nothing was done. */
  readonly alreadyThere: boolean;
}

/** After a failure or an abort the cache is as it was. */
export async function installNccl(installation: Installation): Promise<Installed> {
  const { pin, file, env, signal, say } = installation;
  const folder = ncclFolder(pin, env);
  const library = libraryOf(folder);
  if (await isIntact(folder, pin, signal)) return { library, alreadyThere: true };
  if (file !== undefined) await checkWheel(file, pin, true, signal);
  await mkdir(dirname(folder), { recursive: true });
  const temporary = await mkdtemp(`${folder}.partial-`);
  try {
    const wheel = file ?? (await bring(installation, temporary));
    say(`unpacking ${pin.file}`);
    const made = await unpackWheel({ pin, wheel, folder: temporary, env, signal });
    signal.throwIfAborted();
    await replace(folder, made, join(temporary, 'before'));
  } catch (error) {
    // Two installations at once: the other one was first.
    if (isNotEmpty(error) && (await isIntact(folder, pin, signal))) return { library, alreadyThere: true };
    throw error;
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
  return { library, alreadyThere: false };
}

async function bring({ pin, indexUrl, env, signal, say }: Installation, folder: string): Promise<string> {
  say(`pip brings ${pin.file}`);
  const wheel = await downloadWheel({ pin, indexUrl, folder, env, signal });
  say(`checking ${pin.file}`);
  await checkWheel(wheel, pin, false, signal);
  return wheel;
}

/** What is damaged goes out of the way first: a folder cannot be renamed over one that holds files. */
async function replace(folder: string, made: string, before: string): Promise<void> {
  await rename(folder, before).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error;
  });
  await rename(made, folder);
}

function isNotEmpty(error: unknown): boolean {
  return ['ENOTEMPTY', 'EEXIST'].includes((error as NodeJS.ErrnoException).code ?? '');
}
