// SPDX-License-Identifier: Apache-2.0
// Reads a JSON file that the command line names.

import { readFile } from 'node:fs/promises';

/** The parsed file; `refuse` makes the error from a sentence that starts with the name of the file. */
export async function readJson(
  file: string,
  refuse: (message: string, cause: unknown) => Error,
): Promise<object> {
  let value: unknown;
  try {
    value = JSON.parse(await readFile(file, 'utf8'));
  } catch (cause) {
    throw refuse(`${file} cannot be read as JSON: ${(cause as Error).message}`, cause);
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value;
  throw refuse(`${file} must hold a JSON object.`, undefined);
}
