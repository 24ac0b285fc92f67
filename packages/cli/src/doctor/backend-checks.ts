// SPDX-License-Identifier: Apache-2.0
// Which backend would run, what is installed for GPUs, and what the backend itself says of driver, CUDA, NCCL and GPUs.

import {
  type BackendChoice,
  type BackendReport,
  describeBackends,
  localWorld,
  NcclExtError,
  type PackageReport,
  type World,
} from '@nccl-ext/core';
import { absent, type Check, failed, fixOf, ok } from './check.js';

/** The checks, and the backend that would run (undefined: none would). */
export interface BackendFindings {
  readonly checks: readonly Check[];
  readonly chosen: BackendReport['chosen'];
}

export async function backendChecks(choice: BackendChoice): Promise<BackendFindings> {
  const report = describeBackends(choice);
  const chosen = backendCheck(report);
  const packages = report.packages.map((one) => packageCheck(one, report));
  const facts = report.chosen === undefined || report.chosen === 'embedded' ? [] : await gpuFacts(choice);
  const gpu = facts.length > 0 ? facts : withoutGpu(report);
  return { checks: [chosen, ...packages, driverCheck(report), ...gpu], chosen: report.chosen };
}

const reinstall = 'Install the same version of every @nccl-ext package.';

function backendCheck({ chosen, requested, reason, error }: BackendReport): Check {
  if (chosen !== undefined) return ok('Backend', `${chosen} (${requested} asked for: ${reason})`);
  const [problem] = reason.split('\n');
  return failed('Backend', problem!, error?.help ?? reinstall);
}

function packageCheck(
  { name, installed, version, path, problem }: PackageReport,
  report: BackendReport,
): Check {
  const title = `@nccl-ext/${name}`;
  if (problem !== undefined)
    return failed(title, problem, `Reinstall it: npm i --force ${title}@${report.coreVersion}.`);
  if (installed) return ok(title, `${version} in ${path}`);
  return absent(title, `npm i ${title} for GPUs with CUDA ${name.slice('cuda'.length)}.`);
}

function driverCheck({ driver }: BackendReport): Check {
  if (driver !== undefined) return ok('Driver', `NVIDIA ${driver}`);
  return absent(
    'Driver',
    'Install an NVIDIA driver (580 or newer for CUDA 13, 525 for CUDA 12); the embedded backend needs none.',
  );
}

/** A GPU backend tells about CUDA, NCCL and its devices once it has a rank. */
async function gpuFacts(backend: BackendChoice): Promise<Check[]> {
  let world: World;
  try {
    world = await localWorld({ ranks: 1, backend });
  } catch (error) {
    if (!NcclExtError.is(error)) throw error;
    return [failed('GPUs', error.message.split('\n')[0]!, fixOf(error, reinstall))];
  }
  try {
    const details = Object.entries(world.backend.details).map(([name, value]) => ok(name, value));
    return [...details, ...world.ranks.map(({ device }) => ok(`GPU ${device.index}`, device.name))];
  } finally {
    await world.dispose();
  }
}

function withoutGpu({ driver }: BackendReport): Check[] {
  const fix =
    driver === undefined
      ? 'Needs an NVIDIA driver and @nccl-ext/cuda13 or @nccl-ext/cuda12.'
      : 'Install @nccl-ext/cuda13 or @nccl-ext/cuda12; this machine has a driver.';
  const parts = ['CUDA', 'NCCL', 'GPUs'].map((name) => absent(name, fix));
  return [...parts, absent('Topology', `${fix} Plans take --topology instead.`)];
}
