// SPDX-License-Identifier: Apache-2.0
// What a launcher (torchrun, mpirun, srun, Kubernetes) said about this process.

import { NcclExtError, readLauncher } from '@nccl-ext/core';
import { type Check, failed, ok } from './check.js';

export function launcherCheck(env: Readonly<Record<string, string | undefined>>): Check {
  try {
    const launch = readLauncher(env);
    if (launch === undefined) return ok('Launcher', 'none: all ranks of a world live in one process');
    const { launcher, rank, worldSize, address, port } = launch;
    return ok('Launcher', `${launcher}: rank ${rank} of ${worldSize}, meeting at ${address}:${port}`);
  } catch (error) {
    if (!NcclExtError.is(error)) throw error;
    const help = error.help ?? 'Unset the variables of the launcher.';
    return failed('Launcher', error.message.replace(`\n${help}`, ''), help);
  }
}
