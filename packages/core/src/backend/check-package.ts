// SPDX-License-Identifier: Apache-2.0
// Whether an installed GPU backend fits this core and this machine, before its native code is loaded.

import { NcclExtError } from '../errors/nccl-ext-error.js';
import { bestFor, loadAdvice } from './advice.js';
import type { CudaManifest } from './cuda-package.js';
import type { FoundPackage } from './discover.js';
import { atLeast } from './dotted-version.js';
import type { Machine } from './machine.js';

/**
 * The manifest of a package that may be loaded.
 *
 * @throws ERR_BACKEND_LOAD when the package is broken or glibc is too old, ERR_BACKEND_VERSION when it belongs to another core,
 * ERR_DRIVER_TOO_OLD when the driver is known and too old.
 */
export function checkPackage(found: FoundPackage, machine: Machine, coreVersion: string): CudaManifest {
  const { name, manifest, path, problem } = found;
  if (manifest === undefined) {
    throw new NcclExtError(
      'ERR_BACKEND_LOAD',
      `@nccl-ext/${name} is installed${path === undefined ? '' : ` in ${path}`}, but its package.json cannot be used: ${messageOf(problem)}`,
      { help: loadAdvice('not found', name, undefined), field: 'package.json', cause: problem },
    );
  }
  if (manifest.version !== coreVersion) {
    throw new NcclExtError(
      'ERR_BACKEND_VERSION',
      `@nccl-ext/core is ${coreVersion} but @nccl-ext/${name} is ${manifest.version}.`,
      {
        help: `Run \`npm i @nccl-ext/${name}@${coreVersion}\`.`,
        field: 'version',
        expected: coreVersion,
        seen: manifest.version,
      },
    );
  }
  checkGlibc(found, manifest.config?.glibc, machine);
  checkDriver(found, manifest.config?.driver, machine);
  return manifest;
}

function checkGlibc({ name }: FoundPackage, needed: string | undefined, machine: Machine): void {
  if (needed === undefined) return;
  const glibc = machine.glibc();
  if (glibc !== undefined && atLeast(glibc, needed)) return;
  const seen =
    glibc === undefined ? `no glibc (${process.platform}; musl is not supported)` : `glibc ${glibc}`;
  throw new NcclExtError('ERR_BACKEND_LOAD', `@nccl-ext/${name} needs glibc >= ${needed}, found ${seen}.`, {
    help: loadAdvice(`GLIBC_${needed}`, name, glibc),
    field: 'glibc',
    expected: `>=${needed}`,
    seen: glibc,
  });
}

function checkDriver({ name }: FoundPackage, needed: string | undefined, machine: Machine): void {
  const driver = machine.driver();
  if (needed === undefined || driver === undefined || atLeast(driver, needed)) return;
  const other = bestFor(driver);
  const instead =
    other === undefined || other === name
      ? ''
      : `, or \`npm uninstall @nccl-ext/${name}\` and \`npm i @nccl-ext/${other}\``;
  throw new NcclExtError(
    'ERR_DRIVER_TOO_OLD',
    `CUDA ${name.slice(4)} needs an NVIDIA driver >= ${needed}, found ${driver}.`,
    { help: `Update the driver${instead}.`, field: 'driver', expected: `>=${needed}`, seen: driver },
  );
}

/** The message of whatever was thrown. */
export function messageOf(problem: unknown): string {
  return problem instanceof Error ? problem.message : String(problem);
}
