// SPDX-License-Identifier: Apache-2.0
// Which backend would run, what is installed for GPUs, and what the backend finds of driver, CUDA, NCCL and GPUs.

import {
  type BackendChoice,
  type BackendReport,
  describeBackends,
  localWorld,
  NcclExtError,
  type PackageReport,
  type Probe,
  probeBackend,
  type World,
} from '@nccl-ext/core';
import type { ErrorRecord } from '@nccl-ext/core/contract';
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
  return { checks: [chosen, ...packages, ...(await gpuChecks(choice, report))], chosen: report.chosen };
}

async function gpuChecks(choice: BackendChoice, report: BackendReport): Promise<Check[]> {
  const { chosen } = report;
  if (chosen === undefined || chosen === 'embedded') return [driverCheck(report), ...withoutGpu(report)];
  const { probe, error } = await probeBackend(choice);
  if (error !== undefined)
    return [driverCheck(report), errorCheck(`@nccl-ext/${chosen} loads`, error, reinstall)];
  if (probe === undefined) return [driverCheck(report), ...(await worldChecks(choice, true))];
  const checks = probeChecks(probe, report);
  const usable = probe.driver.ok && probe.nccl.ok;
  return usable ? [...checks, ...(await worldChecks(choice, false))] : checks;
}

const reportIt = 'Report it with the output of `nccl-ext doctor --json`.';
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

/** The lines Driver, CUDA, NCCL and GPUs from what the backend's native code found. */
export function probeChecks({ driver, nccl }: Probe, report: Pick<BackendReport, 'driver'>): Check[] {
  if (!driver.ok) {
    const seeDriver = 'See the line Driver.';
    return [
      recordCheck('Driver', driver.error),
      absent('CUDA', seeDriver),
      ncclCheck(nccl),
      absent('GPUs', seeDriver),
    ];
  }
  const { cuda, devices } = driver.value;
  return [
    ok('Driver', `NVIDIA ${report.driver ?? 'of unknown version'}`),
    ok('CUDA', `${cuda} is the newest that the driver runs`),
    ncclCheck(nccl),
    ok('GPUs', String(devices)),
  ];
}

function ncclCheck(nccl: Probe['nccl']): Check {
  if (!nccl.ok) return recordCheck('NCCL', nccl.error);
  const { path, version, cudaMajor } = nccl.value;
  return ok('NCCL', `${version}${cudaMajor === 0 ? '' : ` for CUDA ${cudaMajor}`} in ${path}`);
}

// All of it: the record of a library that was not found lists every place that was tried.
function recordCheck(name: string, { detail, help }: ErrorRecord): Check {
  return failed(name, detail, help ?? reinstall);
}

function errorCheck(name: string, error: NcclExtError, otherwise: string): Check {
  return failed(name, error.message.split('\n')[0]!, fixOf(error, otherwise));
}

/** Whether a rank can be made, and which GPU it is on; with `facts` also what the backend then tells. */
async function worldChecks(backend: BackendChoice, facts: boolean): Promise<Check[]> {
  let world: World;
  try {
    world = await localWorld({ ranks: 1, backend });
  } catch (error) {
    if (!NcclExtError.is(error)) throw error;
    return [errorCheck('World of 1 rank', error, reportIt)];
  }
  try {
    const details = Object.entries(facts ? world.backend.details : {}).map(([name, value]) =>
      ok(name, value),
    );
    return [...details, ...world.ranks.map(({ device }) => ok(`GPU ${device.index}`, device.name))];
  } finally {
    await world.dispose();
  }
}

function withoutGpu(report: BackendReport): Check[] {
  const fix = gpuAdvice(report);
  const parts = ['CUDA', 'NCCL', 'GPUs'].map((name) => absent(name, fix));
  return [...parts, absent('Topology', `${fix} Plans take --topology instead.`)];
}

function gpuAdvice({ driver, packages, chosen }: BackendReport): string {
  if (packages.some(({ installed }) => installed)) {
    return chosen === undefined
      ? 'See the line Backend.'
      : 'The embedded backend was asked for; NCCL_EXT_BACKEND=auto asks for the one on GPUs.';
  }
  return driver === undefined
    ? 'Needs an NVIDIA driver and @nccl-ext/cuda13 or @nccl-ext/cuda12.'
    : 'Install @nccl-ext/cuda13 or @nccl-ext/cuda12; this machine has a driver.';
}
