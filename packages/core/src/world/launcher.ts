// SPDX-License-Identifier: Apache-2.0
// Which rank of how many this process is, and where ranks meet, as torchrun or Open MPI's mpirun told it.

import { requireObject } from '../errors/require-kind.js';
import { type Environment, type ExplicitOptions, resolveOption } from '../options/resolve-options.js';
import {
  type CountName,
  type Counts,
  countNames,
  countVariables,
  type LauncherName,
  LauncherVariables,
} from './launcher-variables.js';

/** What a launcher said about this process. */
export interface Launch {
  readonly launcher: LauncherName;
  readonly rank: number;
  readonly worldSize: number;
  /** This process among those of its node. */
  readonly localRank: number;
  readonly localWorldSize: number;
  /** Host of rank 0; `127.0.0.1` in a world of one rank that was told none. */
  readonly address: string;
  /** TCP port on which ranks meet rank 0; 0 in a world of one rank that was told none. */
  readonly port: number;
}

/** The options that name the meeting point. */
export type MeetingOptions = Pick<ExplicitOptions, 'address' | 'port'>;

/**
 * Reads the launcher's variables; undefined when none is set.
 *
 * Where both launchers left variables (as in a script under mpirun that sets torchrun's), they must agree, each completes the
 * other, and a complete set of torchrun's gives `launcher: 'torchrun'`. Ranks meet at the options `address` and `port`,
 * by default MASTER_ADDR and MASTER_PORT + 1.
 *
 * @throws ERR_LAUNCHER when variables are missing, malformed, out of range or contradictory; it lists what was seen.
 * ERR_INVALID_ARGUMENT when NCCL_EXT_ADDR, NCCL_EXT_PORT or an option is wrong.
 * @example
 * ```ts
 * const launch = readLauncher(process.env);
 * if (launch !== undefined) process.stdout.write(`rank ${launch.rank} of ${launch.worldSize}\n`);
 * ```
 */
export function readLauncher(
  env: Environment = process.env,
  options: MeetingOptions = {},
): Launch | undefined {
  requireObject('env', env);
  requireObject('options', options);
  const variables = new LauncherVariables(env);
  if (variables.seen.length === 0) return undefined;
  const torchrun = variables.counts('torchrun');
  const openmpi = variables.counts('openmpi');
  variables.integer('GROUP_RANK', 0, 0x7fff_ffff);
  rejectContradictions(variables, torchrun, openmpi);
  const counts = complete(variables, { ...openmpi, ...torchrun });
  const limit = (name: CountName, most: number): void => {
    if (counts[name] <= most) return;
    const variable = countVariables[torchrun[name] === undefined ? 'openmpi' : 'torchrun'][name];
    throw variables.refuse(`${variable} is ${counts[name]}, but may be at most ${most} here`, variable);
  };
  limit('rank', counts.worldSize - 1);
  limit('localRank', counts.localWorldSize - 1);
  limit('localWorldSize', counts.worldSize);
  const launcher = countNames.every((name) => torchrun[name] !== undefined) ? 'torchrun' : 'openmpi';
  return { launcher, ...counts, ...meetingPoint(variables, env, options, counts.worldSize) };
}

function rejectContradictions(variables: LauncherVariables, torchrun: Counts, openmpi: Counts): void {
  for (const name of countNames) {
    if (torchrun[name] === undefined || openmpi[name] === undefined || torchrun[name] === openmpi[name])
      continue;
    const variable = countVariables.torchrun[name];
    throw variables.refuse(
      `${variable} and ${countVariables.openmpi[name]} contradict each other`,
      variable,
      'Unset the variables of the launcher that did not start this process.',
    );
  }
}

function complete(variables: LauncherVariables, counts: Counts): Record<CountName, number> {
  const { rank, worldSize, localRank, localWorldSize } = counts;
  if (
    rank !== undefined &&
    worldSize !== undefined &&
    localRank !== undefined &&
    localWorldSize !== undefined
  ) {
    return { rank, worldSize, localRank, localWorldSize };
  }
  // MASTER_ADDR alone tells no launcher; torchrun's variables are what a person would set by hand.
  const likely = variables.sees('openmpi') && !variables.sees('torchrun') ? 'openmpi' : 'torchrun';
  const absent = countNames.filter((name) => counts[name] === undefined);
  throw variables.missing(absent.map((name) => countVariables[likely][name]));
}

function meetingPoint(
  variables: LauncherVariables,
  env: Environment,
  options: MeetingOptions,
  worldSize: number,
): { address: string; port: number } {
  if (env.MASTER_ADDR?.trim() === '') throw variables.refuse('MASTER_ADDR is empty', 'MASTER_ADDR');
  const masterPort = variables.integer('MASTER_PORT', 1, 65_535);
  const address = resolveOption('address', options.address, env).value ?? env.MASTER_ADDR;
  const port = resolveOption('port', options.port, env).value ?? (masterPort && masterPort + 1);
  if (port !== undefined && port > 65_535) {
    throw variables.refuse(
      'MASTER_PORT is 65535 and the ports end there',
      'MASTER_PORT',
      'Set NCCL_EXT_PORT.',
    );
  }
  if (worldSize === 1) return { address: address ?? '127.0.0.1', port: port ?? 0 };
  const missing: string[] = [];
  if (address === undefined) missing.push('MASTER_ADDR (or NCCL_EXT_ADDR)');
  if (port === undefined) missing.push('MASTER_PORT (or NCCL_EXT_PORT)');
  if (address === undefined || port === undefined) throw variables.missing(missing);
  return { address, port };
}
