// SPDX-License-Identifier: Apache-2.0
// Which GPU backends are installed, without loading them.

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname } from 'node:path';
import * as z from 'zod';
import { type CudaManifest, type CudaName, cudaManifestSchema, cudaNames } from './cuda-package.js';

/** A package that is installed, usable or not. */
export interface FoundPackage {
  readonly name: CudaName;
  /** The file from whose place the package resolves. */
  readonly base: string;
  /** Directory of the package; undefined when it does not let its package.json be resolved. */
  readonly path: string | undefined;
  /** Undefined when the package is broken; `problem` says how. */
  readonly manifest: CudaManifest | undefined;
  readonly problem: unknown;
}

/**
 * The packages that resolve from the first of these files from which any does.
 * The bases are not merged: a global installation of core must not see a conflict with the backend of the project.
 */
export function discoverPackages(bases: readonly string[]): readonly FoundPackage[] {
  for (const base of bases) {
    const found = cudaNames.flatMap((name) => find(name, base) ?? []);
    if (found.length > 0) return found;
  }
  return [];
}

// Literal specifiers, so that bundlers see them.
const resolveManifest: Record<CudaName, (require: NodeJS.Require) => string> = {
  cuda12: (require) => require.resolve('@nccl-ext/cuda12/package.json'),
  cuda13: (require) => require.resolve('@nccl-ext/cuda13/package.json'),
};

function find(name: CudaName, base: string): FoundPackage | undefined {
  let file: string;
  try {
    file = resolveManifest[name](createRequire(base));
  } catch (problem) {
    if (isAbsent(problem, name)) return undefined;
    return { name, base, path: undefined, manifest: undefined, problem };
  }
  const path = dirname(file);
  try {
    const parsed = cudaManifestSchema.safeParse(JSON.parse(readFileSync(file, 'utf8')));
    if (parsed.success) return { name, base, path, manifest: parsed.data, problem: undefined };
    return { name, base, path, manifest: undefined, problem: new Error(z.prettifyError(parsed.error)) };
  } catch (problem) {
    return { name, base, path, manifest: undefined, problem };
  }
}

/** Whether a failed resolution says that this package itself is not installed; everything else means that it is broken. */
export function isAbsent(problem: unknown, name: CudaName): boolean {
  const { code, message, pnpCode } = problem as { code?: string; message?: string; pnpCode?: string };
  if (code !== 'MODULE_NOT_FOUND') return false;
  // Yarn Plug'n'Play words it differently; these codes are about the package that was asked for.
  if (pnpCode === 'UNDECLARED_DEPENDENCY' || pnpCode === 'MISSING_PEER_DEPENDENCY') return true;
  return message?.startsWith(`Cannot find module '@nccl-ext/${name}/package.json'`) === true;
}
