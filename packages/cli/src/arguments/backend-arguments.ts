// SPDX-License-Identifier: Apache-2.0
// The options that say where a run happens. The backend is decided here, so that the command says in its own words what it runs on.

import { type BackendChoice, describeBackends, NcclExtError, resolveOptions } from '@nccl-ext/core';
import type { ArgsDef } from 'citty';
import type { Arguments } from './arguments.js';

export const backendArguments: ArgsDef = {
  backend: {
    type: 'string',
    valueHint: 'NAME',
    description: 'auto (the installed GPU backend, else the embedded one), embedded, cuda, cuda12 or cuda13',
  },
  workers: {
    type: 'string',
    valueHint: 'N',
    description: 'Threads of the embedded backend; by default one per core, at most one per rank',
  },
  timeout: {
    type: 'string',
    valueHint: 'MS',
    description: 'Longest wait for a rank, in milliseconds; default 30000',
  },
};

export interface BackendInput {
  readonly backend: BackendChoice;
  /** Why this one, in words. */
  readonly backendReason: string;
  readonly workers: number;
  readonly timeoutMs: number;
}

/**
 * What to run on; options win over NCCL_EXT_BACKEND and its like.
 *
 * @throws ERR_INVALID_ARGUMENT, and the errors of the backend loader.
 */
export function readBackendInput(
  args: Arguments,
  env: Readonly<Record<string, string | undefined>>,
): BackendInput {
  const { values } = resolveOptions(
    {
      backend: args.oneOf('backend', ['auto', 'embedded', 'cuda', 'cuda12', 'cuda13']),
      workers: args.libraryNumber('workers', 'workers'),
      timeoutMs: args.libraryNumber('timeout', 'timeoutMs'),
    },
    env,
  );
  const { chosen, reason, error } = describeBackends(values.backend);
  if (error !== undefined) throw error;
  // Naming the embedded backend keeps the loader's process warning away: the summary says it.
  const backend = chosen === 'embedded' ? 'embedded' : values.backend;
  return { backend, backendReason: reason, workers: values.workers, timeoutMs: values.timeoutMs };
}

/** @throws ERR_INVALID_ARGUMENT for the first of the options `names` that is given where ranks have no GPU: it would change nothing. */
export function requireGpuFor(args: Arguments, names: readonly string[], backend: BackendChoice): void {
  const name = backend === 'embedded' ? names.find((candidate) => args.has(candidate)) : undefined;
  if (name === undefined) return;
  throw new NcclExtError('ERR_INVALID_ARGUMENT', `--${name} is for GPUs; this is the embedded backend.`, {
    help: 'Leave it out, or say --backend cuda.',
    field: `--${name}`,
  });
}
