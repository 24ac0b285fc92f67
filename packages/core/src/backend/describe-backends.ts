// SPDX-License-Identifier: Apache-2.0
// What the loader sees and would do, for `doctor`: it loads nothing and throws nothing.

import type { BackendName } from '../contract/backend.js';
import { NcclExtError } from '../errors/nccl-ext-error.js';
import type { BackendChoice } from '../options/option-table.js';
import { checkPackage, messageOf } from './check-package.js';
import { type CudaName, cudaNames } from './cuda-package.js';
import { discoverPackages } from './discover.js';
import { type LoaderContext, processContext } from './loader-context.js';
import { selectBackend } from './select.js';

/** One GPU backend as it is installed. */
export interface PackageReport {
  readonly name: CudaName;
  readonly installed: boolean;
  readonly version: string | undefined;
  readonly path: string | undefined;
  /** Why it is broken; undefined when its package.json is sound. */
  readonly problem: string | undefined;
}

/** What was found and what follows from it. */
export interface BackendReport {
  readonly coreVersion: string;
  readonly requested: BackendChoice;
  /** NVIDIA driver; undefined when it cannot be read. */
  readonly driver: string | undefined;
  /** Undefined on musl and outside Linux. */
  readonly glibc: string | undefined;
  readonly packages: readonly PackageReport[];
  /** The backend that would be loaded; undefined when `error` says why none. */
  readonly chosen: BackendName | undefined;
  /** Why it was chosen, in words. */
  readonly reason: string;
  readonly error: NcclExtError | undefined;
}

/**
 * What is installed, which backend `choice` gives, and why.
 *
 * @example
 * ```ts
 * const { chosen, reason } = describeBackends('auto'); // 'embedded', 'no GPU backend is installed'
 * ```
 */
export function describeBackends(
  choice: BackendChoice = 'auto',
  context: LoaderContext = processContext(),
): BackendReport {
  const { bases, machine, coreVersion } = context;
  const found = discoverPackages(bases);
  const facts = {
    coreVersion,
    requested: choice,
    driver: machine.driver(),
    glibc: machine.glibc(),
    packages: cudaNames.map((name): PackageReport => {
      const one = found.find((candidate) => candidate.name === name);
      const broken = one !== undefined && one.manifest === undefined;
      return {
        name,
        installed: one !== undefined,
        version: one?.manifest?.version,
        path: one?.path,
        problem: broken ? messageOf(one.problem) : undefined,
      };
    }),
  };
  try {
    const selection = selectBackend(choice, found, machine.driver);
    if (selection.kind !== 'embedded') checkPackage(selection.found, machine, coreVersion);
    return { ...facts, chosen: selection.kind, reason: selection.reason, error: undefined };
  } catch (error) {
    if (!NcclExtError.is(error)) throw error;
    return { ...facts, chosen: undefined, reason: error.message, error };
  }
}
