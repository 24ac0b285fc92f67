// SPDX-License-Identifier: Apache-2.0
// The options that say where a run happens. The backend is decided here, so that the command says in its own words what it runs on.

import {
  type BackendChoice,
  describeBackends,
  type Environment,
  NcclExtError,
  type Options,
  resolveOptions,
} from '@nccl-ext/core';
import type { BackendName } from '@nccl-ext/core/contract';
import type { ArgsDef } from 'citty';
import type { Arguments } from './arguments.js';

export const backendArguments: ArgsDef = {
  backend: {
    type: 'string',
    valueHint: 'NAME',
    description:
      'auto (the default: the installed GPU backend, else the embedded one), embedded, cuda, cuda12 or cuda13',
  },
  workers: {
    type: 'string',
    valueHint: 'N',
    description: 'Threads of the embedded backend; default one per core, at most one per rank',
  },
  timeout: {
    type: 'string',
    valueHint: 'MS',
    description: 'Longest wait for a rank, in milliseconds; default 30000',
  },
};

export interface BackendInput {
  /** The one that runs, never `auto`. */
  readonly backend: BackendName;
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
export function readBackendInput(args: Arguments, env: Environment): BackendInput {
  const { backend, workers, timeoutMs } = readBackendOptions(args, env);
  const { chosen, reason, error } = describeBackends(backend);
  if (chosen === undefined) throw error;
  requireThreadsFor(args, ['workers'], chosen);
  // Its own name also keeps the loader's process warning of the embedded backend away: the summary says it.
  return { backend: chosen, backendReason: reason, workers, timeoutMs };
}

/** What --backend says. @throws ERR_INVALID_ARGUMENT for no backend. */
export function readBackendChoice(args: Arguments): BackendChoice | undefined {
  return args.oneOf('backend', ['auto', 'embedded', 'cuda', 'cuda12', 'cuda13']);
}

/** What is asked for, `auto` included. @throws ERR_INVALID_ARGUMENT naming the option or variable. */
export function readBackendOptions(args: Arguments, env: Environment): Options {
  const explicit = {
    backend: readBackendChoice(args),
    workers: args.libraryNumber('workers', 'workers'),
    timeoutMs: args.libraryNumber('timeout', 'timeoutMs'),
  };
  return resolveOptions(explicit, env).values;
}

/** @throws ERR_INVALID_ARGUMENT for the first of the options `names` that is given where ranks have no GPU: it would change nothing. */
export function requireGpuFor(args: Arguments, names: readonly string[], backend: BackendName): void {
  const name = names.find((candidate) => args.has(candidate));
  if (backend !== 'embedded' || name === undefined) return;
  throw new NcclExtError('ERR_INVALID_ARGUMENT', `--${name} is for GPUs; this is the embedded backend.`, {
    help: 'Leave it out, or say --backend cuda.',
    field: `--${name}`,
  });
}

/** {@link requireGpuFor} the other way round: for options of the threads that only the embedded backend has. */
function requireThreadsFor(args: Arguments, names: readonly string[], backend: BackendName): void {
  const name = names.find((candidate) => args.has(candidate));
  if (backend === 'embedded' || name === undefined) return;
  throw new NcclExtError(
    'ERR_INVALID_ARGUMENT',
    `--${name} is for the embedded backend; this is the ${backend} backend.`,
    { help: 'Leave it out, or say --backend embedded.', field: `--${name}` },
  );
}
