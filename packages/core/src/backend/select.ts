// SPDX-License-Identifier: Apache-2.0
// The decision table: which backend runs, given what was asked for and what is installed. Nothing is loaded here.

import { NcclExtError } from '../errors/nccl-ext-error.js';
import type { BackendChoice } from '../options/option-table.js';
import { installAdvice, uninstallAdvice } from './advice.js';
import type { CudaName } from './cuda-package.js';
import type { FoundPackage } from './discover.js';

/** A decision and its reason in words. */
export type Selection =
  | { readonly kind: 'embedded'; readonly reason: string; readonly byDefault: boolean }
  | { readonly kind: CudaName; readonly reason: string; readonly found: FoundPackage };

/**
 * | asked for | none installed | one installed | both installed |
 * | --- | --- | --- | --- |
 * | embedded | embedded | embedded | embedded |
 * | auto | embedded | that one | conflict |
 * | cuda | missing | that one | conflict |
 * | cuda12, cuda13 | missing | that one, or missing | that one |
 *
 * @throws ERR_BACKEND_MISSING or ERR_BACKEND_CONFLICT.
 */
export function selectBackend(
  choice: BackendChoice,
  found: readonly FoundPackage[],
  driver: () => string | undefined,
): Selection {
  if (choice === 'embedded') {
    return { kind: 'embedded', reason: 'the embedded backend was asked for', byDefault: false };
  }
  if (choice === 'cuda12' || choice === 'cuda13') {
    const picked = found.find(({ name }) => name === choice);
    if (picked !== undefined) return { kind: choice, reason: `${choice} was asked for`, found: picked };
    const others = found.map((one) => `${labelOf(one)} is.`);
    throw missing([`@nccl-ext/${choice} is not installed.`, ...others].join(' '), choice, found);
  }
  const [first, second] = found;
  if (first !== undefined && second !== undefined) {
    throw new NcclExtError(
      'ERR_BACKEND_CONFLICT',
      `Both ${labelOf(first)} and ${labelOf(second)} are installed. They load two copies of CUDA and NCCL into one process, ` +
        'so exactly one may be present.',
      { help: uninstallAdvice(driver()), field: 'backend', seen: found.map(labelOf) },
    );
  }
  if (first !== undefined) {
    return { kind: first.name, reason: `${labelOf(first)} is the installed GPU backend`, found: first };
  }
  if (choice === 'cuda') throw missing('No GPU backend is installed.', undefined, found);
  return { kind: 'embedded', reason: 'no GPU backend is installed', byDefault: true };

  function missing(
    message: string,
    wanted: CudaName | undefined,
    seen: readonly FoundPackage[],
  ): NcclExtError {
    return new NcclExtError('ERR_BACKEND_MISSING', message, {
      help: installAdvice(driver(), wanted),
      field: 'backend',
      expected: choice,
      seen: seen.map(labelOf),
    });
  }
}

/** Name and version of a package, as in `@nccl-ext/cuda13@0.1.0`. */
function labelOf({ name, manifest }: FoundPackage): string {
  return `@nccl-ext/${name}${manifest === undefined ? ' (broken)' : `@${manifest.version}`}`;
}
