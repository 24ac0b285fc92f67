// SPDX-License-Identifier: Apache-2.0
// Finds, checks and loads the backend that a world runs on. A GPU backend that is installed but broken is an error, never a
// silent fall-back to the embedded one (complaints: withcatai/node-llama-cpp#423, tensorflow/tfjs#8269).

import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import type { Backend, BuildInfo, CudaPackage, LoadOptions } from '../contract/index.js';
import { NcclExtError } from '../errors/nccl-ext-error.js';
import type { BackendChoice } from '../options/option-table.js';
import { installAdvice, loadAdvice } from './advice.js';
import { checkPackage, messageOf } from './check-package.js';
import type { CudaName } from './cuda-package.js';
import { discoverPackages, type FoundPackage } from './discover.js';
import { type LoaderContext, processContext } from './loader-context.js';
import type { Machine } from './machine.js';
import { selectBackend } from './select.js';

/** The chosen backend; the embedded one is part of core and has nothing to load. */
export type LoadedBackend =
  | { readonly kind: 'embedded' }
  | {
      readonly kind: CudaName;
      readonly module: Backend;
      readonly version: string;
      /** Directory of the package. */
      readonly path: string;
      readonly buildInfo: BuildInfo;
    };

/**
 * Loads the backend for `choice`. `auto` without a GPU backend gives the embedded one and, once per process, a warning
 * with the code `NCCL_EXT_EMBEDDED_BACKEND`. A GPU backend gets `options`.
 *
 * @throws ERR_BACKEND_MISSING, ERR_BACKEND_CONFLICT, ERR_BACKEND_VERSION, ERR_BACKEND_LOAD or ERR_DRIVER_TOO_OLD.
 */
export async function loadBackend(
  choice: BackendChoice,
  context: LoaderContext = processContext(),
  options: LoadOptions = {},
): Promise<LoadedBackend> {
  const { bases, machine, coreVersion } = context;
  const selection = selectBackend(choice, discoverPackages(bases), machine.driver);
  if (selection.kind === 'embedded') {
    if (selection.byDefault) warnOnce(installAdvice(machine.driver()));
    return { kind: 'embedded' };
  }
  const { found } = selection;
  const manifest = checkPackage(found, machine, coreVersion);
  try {
    const { load, buildInfo } = await importPackage(found);
    return {
      kind: found.name,
      module: load(options),
      version: manifest.version,
      path: found.path!,
      buildInfo,
    };
  } catch (cause) {
    throw cannotLoad(found, cause, machine);
  }
}

/** ERR_BACKEND_LOAD for whatever a package or its native code threw. */
export function cannotLoad({ name, path }: FoundPackage, cause: unknown, machine: Machine): NcclExtError {
  const message = messageOf(cause);
  return new NcclExtError('ERR_BACKEND_LOAD', `@nccl-ext/${name} in ${path} cannot be loaded: ${message}`, {
    help: loadAdvice(message, name, machine.glibc()),
    field: 'backend',
    cause,
  });
}

const resolveEntry: Record<CudaName, (require: NodeJS.Require) => string> = {
  cuda12: (require) => require.resolve('@nccl-ext/cuda12'),
  cuda13: (require) => require.resolve('@nccl-ext/cuda13'),
};

/** The exports of a package; what its code throws, and a TypeError when they are not those of a CUDA package. */
export async function importPackage({ name, base }: FoundPackage): Promise<CudaPackage> {
  const entry = resolveEntry[name](createRequire(base));
  const exports: Partial<CudaPackage> = await import(pathToFileURL(entry).href);
  const { load, probe, buildInfo } = exports;
  if (typeof load !== 'function') throw new TypeError(`${entry} has no function load`);
  if (typeof buildInfo !== 'object' || buildInfo === null)
    throw new TypeError(`${entry} has no object buildInfo`);
  return { load, buildInfo, ...(typeof probe === 'function' ? { probe } : {}) };
}

// On globalThis, so that two copies of this package warn once together.
const warned: unique symbol = Symbol.for('nccl-ext.embedded-backend-warning') as never;

function warnOnce(advice: string): void {
  const flags = globalThis as { [warned]?: boolean };
  if (flags[warned] === true) return;
  flags[warned] = true;
  process.emitWarning(`No GPU backend is installed; the embedded backend runs on the CPU.\n${advice}`, {
    type: 'NcclExtWarning',
    code: 'NCCL_EXT_EMBEDDED_BACKEND',
  });
}
