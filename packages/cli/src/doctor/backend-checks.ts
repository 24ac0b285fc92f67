// SPDX-License-Identifier: Apache-2.0
// Which backend would run, what is installed for GPUs, and what the backend finds of driver, CUDA, NCCL and GPUs.

import {
  type BackendChoice,
  type BackendReport,
  describeBackends,
  type NcclExtError,
  type PackageReport,
  type Probe,
  probeBackend,
} from '@nccl-ext/core';
import type { ErrorRecord } from '@nccl-ext/core/contract';
import { absent, type Check, failed, fixOf, ok } from './check.js';
import { communicatorChecks } from './communicator-checks.js';
import { deviceChecks } from './device-checks.js';

/** The checks, and the backend that would run (undefined: none would). */
export interface BackendFindings {
  readonly checks: readonly Check[];
  readonly chosen: BackendReport['chosen'];
  /** What the native code found of driver, GPUs and NCCL; undefined where none was loaded. */
  readonly probe?: Probe;
  /** What the communicator of a first world told; undefined where none was made. */
  readonly communicator?: Readonly<Record<string, string>>;
}

type GpuFindings = Omit<BackendFindings, 'chosen'>;

export async function backendChecks(choice: BackendChoice): Promise<BackendFindings> {
  const report = describeBackends(choice);
  const chosen = backendCheck(report);
  const packages = report.packages.map((one) => packageCheck(one, report));
  const gpus = await gpuFindings(choice, report);
  return { ...gpus, checks: [chosen, ...packages, ...gpus.checks], chosen: report.chosen };
}

async function gpuFindings(choice: BackendChoice, report: BackendReport): Promise<GpuFindings> {
  const { chosen } = report;
  if (chosen === undefined || chosen === 'embedded')
    return { checks: [driverCheck(report), ...withoutGpu(report)] };
  const { probe, error } = await probeBackend(choice);
  if (error !== undefined)
    return { checks: [driverCheck(report), errorCheck(`@nccl-ext/${chosen} loads`, error, reinstall)] };
  const checks = probe === undefined ? [driverCheck(report)] : probeChecks(probe, report);
  const found = probe === undefined ? { checks } : { checks, probe };
  if (probe !== undefined && !(probe.driver.ok && probe.nccl.ok)) return found;
  const world = await communicatorChecks(choice, probe?.devices.length ?? 1);
  return { ...found, checks: [...checks, ...world.checks], communicator: world.facts };
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

/** The lines Driver, CUDA, NCCL and GPUs, and one per GPU, from what the backend's native code found. */
export function probeChecks(
  { driver, devices, nccl }: Probe,
  report: Pick<BackendReport, 'driver'>,
): Check[] {
  if (!driver.ok) {
    const seeDriver = 'See the line Driver.';
    return [
      recordCheck('Driver', driver.error),
      absent('CUDA', seeDriver),
      ncclCheck(nccl),
      absent('GPUs', seeDriver),
    ];
  }
  const { cuda, devices: count } = driver.value;
  return [
    ok('Driver', `NVIDIA ${report.driver ?? 'of unknown version'}`),
    ok('CUDA', `${cuda} is the newest that the driver runs`),
    ncclCheck(nccl),
    ok('GPUs', String(count)),
    ...deviceChecks(devices),
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
