// SPDX-License-Identifier: Apache-2.0
// Where a launcher started this process as one of several: some commands join the others, some make all ranks themselves.

import { type Environment, type Launch, NcclExtError, readLauncher } from '@nccl-ext/core';
import type { BackendName } from '@nccl-ext/core/contract';

/**
 * Undefined when this process is on its own: a launcher that started one process started no world.
 *
 * @throws ERR_LAUNCHER when the launcher's variables contradict each other.
 */
export function launchOf(env: Environment): Launch | undefined {
  const launch = readLauncher(env);
  return launch === undefined || launch.worldSize === 1 ? undefined : launch;
}

/** For commands that join. @throws ERR_SINGLE_PROCESS where the backend that was chosen cannot. */
export function requireJoinable(command: string, backend: BackendName, launch: Launch | undefined): void {
  if (backend !== 'embedded' || launch === undefined) return;
  throw new NcclExtError(
    'ERR_SINGLE_PROCESS',
    `The embedded backend has all ranks in one process, but a launcher started ${launch.worldSize}.`,
    {
      help: `Call \`nccl-ext ${command}\` without a launcher, or install a GPU backend.`,
      expected: 1,
      seen: launch.worldSize,
    },
  );
}

/** For commands that make all ranks themselves. @throws ERR_LAUNCHER: every process would do all of it. */
export function requireNoLauncher(command: string, env: Environment): void {
  const launch = complete(env);
  if (launch === undefined) return;
  throw new NcclExtError(
    'ERR_LAUNCHER',
    `\`nccl-ext ${command}\` makes all ranks in its own process, but a launcher started ${launch.worldSize} processes.`,
    { help: `Call \`nccl-ext ${command}\` without a launcher.`, expected: 1, seen: launch.worldSize },
  );
}

/** Variables that say half of it, as in a shell within an allocation, started nothing. */
function complete(env: Environment): Launch | undefined {
  try {
    return launchOf(env);
  } catch {
    return undefined;
  }
}
