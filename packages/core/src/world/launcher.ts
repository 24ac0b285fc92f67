// SPDX-License-Identifier: Apache-2.0
// Which rank of how many this process is, and where ranks meet, as torchrun, Open MPI's mpirun, srun or Kubernetes told it.

import type { NcclExtError } from '../errors/nccl-ext-error.js';
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
 * Where both torchrun and Open MPI left variables (as in a script under mpirun that sets torchrun's), they must agree, each
 * completes the other, and a complete set of torchrun's gives `launcher: 'torchrun'`. What neither says, srun's step or the
 * index of a Kubernetes Job says, which must agree with them too. Ranks meet at the options `address` and `port`,
 * by default MASTER_ADDR (under srun the first node of the step) and MASTER_PORT + 1.
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
  const said: Said[] = [
    { launcher: 'torchrun', counts: variables.counts('torchrun') },
    { launcher: 'openmpi', counts: variables.counts('openmpi') },
  ];
  variables.integer('GROUP_RANK', 0, 0x7fff_ffff);
  rejectContradictions(variables, said);
  // Launchers that a scheduler started know better: srun numbers one torchrun per node, and a pod may hold one.
  const scheduler = isComplete(merged(said)) ? undefined : variables.scheduler();
  if (scheduler !== undefined) {
    said.push(scheduler);
    rejectContradictions(variables, said);
  }
  const counts = merged(said);
  if (!isComplete(counts)) throw incomplete(variables, counts, scheduler?.launcher);
  const limit = (name: CountName, most: number): void => {
    if (counts[name] <= most) return;
    const teller = said.find((one) => one.counts[name] !== undefined)?.launcher ?? 'torchrun';
    const variable = countVariables[teller][name];
    throw variables.refuse(`${variable} is ${counts[name]}, but may be at most ${most} here`, variable);
  };
  limit('rank', counts.worldSize - 1);
  limit('localRank', counts.localWorldSize - 1);
  limit('localWorldSize', counts.worldSize);
  const launcher = scheduler?.launcher ?? (isComplete(said[0]!.counts) ? 'torchrun' : 'openmpi');
  return { launcher, ...counts, ...meetingPoint(variables, env, options, counts.worldSize, launcher) };
}

/** One launcher's word. Those that come first count more. */
interface Said {
  readonly launcher: LauncherName;
  readonly counts: Counts;
}

function merged(said: readonly Said[]): Counts {
  return Object.assign({}, ...said.map(({ counts }) => counts).reverse());
}

function isComplete(counts: Counts): counts is Record<CountName, number> {
  return countNames.every((name) => counts[name] !== undefined);
}

function rejectContradictions(variables: LauncherVariables, said: readonly Said[]): void {
  for (const name of countNames) {
    const [first, ...others] = said.filter(({ counts }) => counts[name] !== undefined);
    const other = others.find(({ counts }) => counts[name] !== first!.counts[name]);
    if (first === undefined || other === undefined) continue;
    const variable = countVariables[first.launcher][name];
    throw variables.refuse(
      `${variable} and ${countVariables[other.launcher][name]} contradict each other`,
      variable,
      'Unset the variables of the launcher that did not start this process.',
    );
  }
}

function incomplete(
  variables: LauncherVariables,
  counts: Counts,
  scheduler: LauncherName | undefined,
): NcclExtError {
  // MASTER_ADDR alone tells no launcher; torchrun's variables are what a person would set by hand.
  const likely = variables.sees('openmpi') && !variables.sees('torchrun') ? 'openmpi' : 'torchrun';
  const absent = countNames.filter((name) => counts[name] === undefined);
  return variables.missing(absent.map((name) => countVariables[scheduler ?? likely][name]));
}

function meetingPoint(
  variables: LauncherVariables,
  env: Environment,
  options: MeetingOptions,
  worldSize: number,
  launcher: LauncherName,
): { address: string; port: number } {
  if (env.MASTER_ADDR?.trim() === '') throw variables.refuse('MASTER_ADDR is empty', 'MASTER_ADDR');
  const masterPort = variables.integer('MASTER_PORT', 1, 65_535);
  const address =
    resolveOption('address', options.address, env).value ??
    env.MASTER_ADDR ??
    (launcher === 'slurm' ? variables.firstNode() : undefined);
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
