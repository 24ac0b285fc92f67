// SPDX-License-Identifier: Apache-2.0
// What the chosen GPU backend finds on this machine, for `doctor`: it loads the package, makes no rank and throws nothing.

import type { BackendName, Probe } from '../contract/index.js';
import { NcclExtError } from '../errors/nccl-ext-error.js';
import type { BackendChoice } from '../options/option-table.js';
import { checkPackage } from './check-package.js';
import { discoverPackages } from './discover.js';
import { cannotLoad, importPackage } from './load.js';
import { type LoaderContext, processContext } from './loader-context.js';
import { selectBackend } from './select.js';

/** What a probe gave; `probe` and `error` are both undefined for the embedded backend and for a package that cannot tell. */
export interface BackendProbe {
  /** Undefined when `error` says why none can be loaded. */
  readonly backend: BackendName | undefined;
  readonly probe: Probe | undefined;
  readonly error: NcclExtError | undefined;
}

/**
 * Loads the backend that `choice` gives and asks it for the driver and for NCCL.
 *
 * @example
 * ```ts
 * const { probe, error } = await probeBackend('cuda13');
 * if (probe?.nccl.ok) console.log(probe.nccl.value.path);
 * ```
 */
export async function probeBackend(
  choice: BackendChoice = 'auto',
  context: LoaderContext = processContext(),
): Promise<BackendProbe> {
  const { bases, machine, coreVersion } = context;
  try {
    const selection = selectBackend(choice, discoverPackages(bases), machine.driver);
    if (selection.kind === 'embedded') return { backend: 'embedded', probe: undefined, error: undefined };
    const { found, kind } = selection;
    checkPackage(found, machine, coreVersion);
    try {
      const { probe } = await importPackage(found);
      return { backend: kind, probe: probe?.(), error: undefined };
    } catch (cause) {
      throw cannotLoad(found, cause, machine);
    }
  } catch (error) {
    if (!NcclExtError.is(error)) throw error;
    return { backend: undefined, probe: undefined, error };
  }
}
