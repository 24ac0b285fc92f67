// SPDX-License-Identifier: Apache-2.0
// What `bench ep` runs on: the embedded backend, the only one that has expert parallelism.

import { type Environment, NcclExtError } from '@nccl-ext/core';
import type { Arguments } from '../arguments/arguments.js';
import { type BackendInput, readBackendOptions } from '../arguments/backend-arguments.js';

/** @throws ERR_UNSUPPORTED for a GPU backend, by --backend or NCCL_EXT_BACKEND; ERR_INVALID_ARGUMENT. */
export function readEpBackend(args: Arguments, env: Environment): BackendInput {
  const { backend, workers, timeoutMs } = readBackendOptions(args, env);
  if (backend !== 'auto' && backend !== 'embedded') throw noEp(backend, args.has('backend'));
  const backendReason =
    backend === 'auto' ? 'no GPU backend has expert parallelism yet' : 'the embedded backend was asked for';
  return { backend: 'embedded', backendReason, workers, timeoutMs };
}

function noEp(backend: string, byOption: boolean): NcclExtError {
  const field = byOption ? '--backend' : 'NCCL_EXT_BACKEND';
  return new NcclExtError('ERR_UNSUPPORTED', `${field} is ${backend}, which has no expert parallelism yet.`, {
    help: 'Say --backend embedded.',
    field,
    expected: 'embedded',
    seen: backend,
  });
}
