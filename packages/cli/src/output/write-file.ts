// SPDX-License-Identifier: Apache-2.0
// Files that a command writes appear whole under their name or not at all, and a path that cannot work is refused before any work.

import { randomUUID } from 'node:crypto';
import type { Stats } from 'node:fs';
import { rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, extname, join, resolve } from 'node:path';
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

/** An output path as the command line has it. */
interface OutputPath {
  /** The option that named it. */
  readonly option: string;
  readonly path: string;
  /** As in `.html`; anything else may be a file that nobody wants to lose, such as the checkpoint. */
  readonly extension: string;
  /** Files that the command reads. */
  readonly inputs: readonly (string | undefined)[];
}

/**
 * Refuses an output path before any work: a folder, a file in a folder that does not exist or cannot be written, another
 * extension, an input of the same command.
 *
 * @throws ERR_INVALID_ARGUMENT
 */
export async function requireOutput({ option, path, extension, inputs }: OutputPath): Promise<void> {
  const problem = await problemOf(path, extension, inputs);
  if (problem === undefined) return;
  throw new NcclExtError('ERR_INVALID_ARGUMENT', `--${option} ${path} ${problem}.`, {
    help: `Name a file that ends in ${extension}, in an existing folder.`,
    field: `--${option}`,
    seen: path,
  });
}

async function problemOf(
  path: string,
  extension: string,
  inputs: readonly (string | undefined)[],
): Promise<string | undefined> {
  const folder = dirname(resolve(path));
  const [parent, self] = await Promise.all([folder, path].map(statOf));
  if (self?.isDirectory() === true) return 'is a folder';
  if (parent?.isDirectory() !== true) return `lies in a folder that does not exist: ${folder}`;
  if (extname(path).toLowerCase() !== extension) return `does not end in ${extension}`;
  for (const input of inputs) {
    const read = input === undefined ? undefined : await statOf(input);
    if (self !== undefined && read?.ino === self.ino && read.dev === self.dev)
      return `is ${input}, which the command reads`;
  }
  const refusal = await probe(folder);
  return refusal === undefined
    ? undefined
    : `lies in a folder that cannot be written: ${folder} (${refusal})`;
}

/** Why no file can be made in `folder`. Only trying tells: permissions say nothing of read-only and of virtual file systems. */
async function probe(folder: string): Promise<string | undefined> {
  const path = join(folder, `.nccl-ext-${randomUUID()}.tmp`);
  try {
    await writeFile(path, '', { flag: 'wx' });
    await rm(path, { force: true });
    return undefined;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? String(error);
  }
}

function statOf(path: string): Promise<Stats | undefined> {
  return stat(path).catch(() => undefined);
}
