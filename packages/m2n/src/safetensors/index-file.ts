// SPDX-License-Identifier: Apache-2.0
// Reads the index of a checkpoint of several files: which tensor is in which file of the same folder.

import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import { checkpointError } from './checkpoint-error.js';
import { findDuplicateKey } from './find-duplicate-key.js';

// metadata.total_size is not compared: exporters leave it stale when they drop or convert tensors, and the headers of the
// files prove their own sizes.
const indexSchema: z.ZodType<{ weight_map: Record<string, string> }> = z.object({
  weight_map: z.record(z.string(), z.string()),
});

/**
 * File name by tensor name.
 *
 * @throws ERR_CHECKPOINT when the index is no JSON of the format, has a name twice, or names a file outside its folder.
 */
export async function readIndex(path: string): Promise<ReadonlyMap<string, string>> {
  let text: string;
  let value: unknown;
  try {
    text = await readFile(path, 'utf8');
    value = JSON.parse(text);
  } catch (cause) {
    throw checkpointError(
      path,
      undefined,
      `the index cannot be read as JSON (${(cause as Error).message})`,
      cause,
    );
  }
  const result = indexSchema.safeParse(value);
  if (!result.success) throw checkpointError(path, undefined, z.prettifyError(result.error));
  const duplicate = findDuplicateKey(text);
  if (duplicate !== undefined) throw checkpointError(path, duplicate.at(-1), 'the index has this name twice');
  const files = new Map(Object.entries(result.data.weight_map));
  for (const [tensor, file] of files) requireInside(file, tensor, path);
  return files;
}

/** A file name from an index must not lead out of the folder of the index. */
function requireInside(file: string, tensor: string, path: string): void {
  const parts = file.split('/');
  const escapes = parts.some((part) => part === '' || part === '.' || part === '..');
  if (escapes || /[\\:\0]/.test(file)) {
    const problem = `its file ${JSON.stringify(file)} must be a plain name in the folder of the index`;
    throw checkpointError(path, tensor, problem);
  }
}
