// SPDX-License-Identifier: Apache-2.0
// The self test where a launcher started a process per rank: every process joins the worlds of the cases as that rank.

import { ProcessGroup } from '@nccl-ext/conformance';
import { init, type Launch, localWorld, type TransferPathChoice } from '@nccl-ext/core';
import type { BackendInput } from '../arguments/backend-arguments.js';
import { launchOf, requireJoinable } from '../arguments/launched.js';
import { freePorts } from '../run/free-ports.js';

type Environment = Readonly<Record<string, string | undefined>>;

/** Longer than any wait of a case, so that a case that hangs is a failed one and not a lost process. */
const controlTimeoutMs = (timeoutMs: number): number => Math.max(90_000, 2 * timeoutMs);

/** Making a world takes a while, and its deadline counts there too. */
const leastTimeoutMs = 8_000;

/** Variables of all launchers; a world of a case has its own. */
const launchVariables =
  /^(RANK|WORLD_SIZE|LOCAL_RANK|LOCAL_WORLD_SIZE|GROUP_RANK|NCCL_EXT_(ADDR|PORT)|(TORCHELASTIC|OMPI|PMIX|SLURM|JOB_COMPLETION)_.*)$/;

/** What to run on, and how transfers move bytes there; without `transferPath` the environment says it. */
export interface ProcessesInput extends BackendInput {
  readonly transferPath: TransferPathChoice | undefined;
}

/** Processes of the self test, and how it leaves them. */
export interface JoinedProcesses {
  readonly group: ProcessGroup;
  readonly rank: number;
  readonly size: number;
  leave(): Promise<void>;
}

/** What a launcher started, or undefined where this process is alone. */
export async function joinProcesses(
  { backend, workers, timeoutMs: usual, transferPath }: ProcessesInput,
  env: Environment,
): Promise<JoinedProcesses | undefined> {
  const launch = launchOf(env);
  requireJoinable('selftest', backend, launch);
  if (launch === undefined) return undefined;
  const control = await init({ backend, env, timeoutMs: controlTimeoutMs(usual) });
  const deadline = ({ timeoutMs }: { readonly timeoutMs?: number }): { readonly timeoutMs?: number } =>
    timeoutMs === undefined ? {} : { timeoutMs: Math.max(timeoutMs, leastTimeoutMs) };
  const group = new ProcessGroup({
    control,
    join: ({ ranks, port, ...request }) =>
      init({ backend, transferPath, env: placeIn(env, launch, ranks, port), ...deadline(request) }),
    alone: (request) => localWorld({ ...request, backend, workers, transferPath }),
    freePort: async () => (await freePorts(1))[0]!,
  });
  const { rank, worldSize: size } = launch;
  return { group, rank, size, leave: () => control.dispose() };
}

/** The environment of the same rank in a world of the first `ranks` processes, which meet at another port. */
function placeIn(env: Environment, launch: Launch, ranks: number, port: number): Environment {
  const { rank, localRank, localWorldSize, address } = launch;
  const own = Object.entries(env).filter(([name]) => !launchVariables.test(name));
  return {
    ...Object.fromEntries(own),
    RANK: String(rank),
    WORLD_SIZE: String(ranks),
    LOCAL_RANK: String(localRank),
    LOCAL_WORLD_SIZE: String(Math.min(localWorldSize, ranks - (rank - localRank))),
    NCCL_EXT_ADDR: address,
    NCCL_EXT_PORT: String(port),
  };
}
