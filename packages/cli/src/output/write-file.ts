// SPDX-License-Identifier: Apache-2.0
// Files that a command writes appear whole under their name or not at all, and a path that cannot work is refused before any work.

import { randomUUID } from 'node:crypto';
import { rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { NcclExtError } from '@nccl-ext/core';

/** Writes `text` to `path` by way of a temporary file beside it; after an abort or a failure nothing is left. */
export async function writeWhole(path: string, text: string, signal: AbortSignal): Promise<void> {
  const temporary = `${path}.${randomUUID()}.tmp`;
  try {
    await writeFile(temporary, text, { flag: 'wx', signal });
    signal.throwIfAborted();
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    signal.throwIfAborted();
    throw error;
  }
}

/**
 * Refuses an output path whose folder does not exist or that is a folder itself. `option` is the option that named it.
 *
 * @throws ERR_INVALID_ARGUMENT
 */
export async function requireFolder(option: string, path: string): Promise<void> {
  const folder = dirname(resolve(path));
  const [parent, self] = await Promise.all([folder, path].map((one) => stat(one).catch(() => undefined)));
  if (parent?.isDirectory() === true && self?.isDirectory() !== true) return;
  const problem =
    self?.isDirectory() === true ? 'is a folder' : `lies in a folder that does not exist: ${folder}`;
  throw new NcclExtError('ERR_INVALID_ARGUMENT', `--${option} ${path} ${problem}.`, {
    help: 'Name a file in an existing folder.',
    field: `--${option}`,
    seen: path,
  });
}
