// SPDX-License-Identifier: Apache-2.0
// Reads a manifest from a file.

import { readFile } from 'node:fs/promises';
import { findDuplicateKey } from '../safetensors/find-duplicate-key.js';
import { manifestError } from './manifest-error.js';
import { type Manifest, parseManifest } from './manifest-schema.js';

/** @throws ERR_MANIFEST when the file cannot be read, is no JSON or not of the form of a manifest. */
export async function readManifest(file: string): Promise<Manifest> {
  let text: string;
  let json: unknown;
  try {
    text = await readFile(file, 'utf8');
    json = JSON.parse(text);
  } catch (cause) {
    throw manifestError(`${file} cannot be read as JSON (${(cause as Error).message})`, {
      field: file,
      cause,
    });
  }
  const duplicate = findDuplicateKey(text);
  if (duplicate !== undefined)
    throw manifestError(`${file}: ${duplicate.join('.')} occurs twice`, { field: file });
  return parseManifest(json, file);
}
