// SPDX-License-Identifier: Apache-2.0
// The script that `run` was asked to start, found before any process is: n copies of Node's own error help nobody.

import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { NcclExtError } from '@nccl-ext/core';

/** The absolute path of the script, `nccl-ext` being this command itself where no file has the name; @throws ERR_INVALID_ARGUMENT when it is not given or is no file. */
export async function findScript(script: string | undefined): Promise<string> {
  if (script === undefined) {
    throw new NcclExtError('ERR_INVALID_ARGUMENT', 'The script is missing.', {
      help: 'Name it after the options, as in nccl-ext run -n 4 script.mjs.',
      field: 'script',
    });
  }
  const path = resolve(script);
  const isFile = await stat(path).then(
    (found) => found.isFile(),
    () => false,
  );
  if (isFile) return path;
  if (script === 'nccl-ext') return fileURLToPath(new URL('../../bin/nccl-ext.mjs', import.meta.url));
  throw new NcclExtError('ERR_INVALID_ARGUMENT', `The script ${script} is not a file.`, {
    help: `Looked for ${path}. The first word after the options is the script; it runs with Node.js.`,
    field: 'script',
    seen: script,
  });
}
