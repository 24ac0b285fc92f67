// SPDX-License-Identifier: Apache-2.0
// Which of the two builds of NCCL this machine wants, when nobody says.

import { type BackendReport, NcclExtError } from '@nccl-ext/core';
import { type CudaMajor, cudaMajors } from './pins.js';

/** The first driver that runs CUDA 13. */
const driverOfCuda13 = 580;

/**
 * The CUDA of the backend that is installed, else the newest that the driver runs.
 *
 * @throws ERR_INVALID_ARGUMENT where neither is there to tell
 */
export function chooseCuda({ packages, driver }: Pick<BackendReport, 'packages' | 'driver'>): CudaMajor {
  const installed = cudaMajors.filter((major) =>
    packages.some((one) => one.installed && one.name === `cuda${major}`),
  );
  if (installed.length === 1) return installed[0]!;
  if (driver !== undefined) return Number.parseInt(driver, 10) >= driverOfCuda13 ? 13 : 12;
  throw new NcclExtError(
    'ERR_INVALID_ARGUMENT',
    '--cuda is missing, and this machine does not tell: it has no NVIDIA driver and not exactly one GPU backend.',
    { help: 'Add --cuda 13 or --cuda 12, as @nccl-ext/cuda13 or @nccl-ext/cuda12.', field: '--cuda' },
  );
}
