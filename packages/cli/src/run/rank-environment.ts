// SPDX-License-Identifier: Apache-2.0
// The variables by which a rank learns who it is: those of torchrun, which `init` reads (core/src/world/launcher.ts).

import { randomBytes } from 'node:crypto';
import { NcclExtError } from '@nccl-ext/core';
import { freePorts } from './free-ports.js';

type Environment = Readonly<Record<string, string | undefined>>;

/** Set by a launcher in each process that it starts. */
const rankVariables = ['RANK', 'OMPI_COMM_WORLD_RANK'] as const;

/** Leftovers of a shell that would lead a rank elsewhere: NCCL_EXT_ADDR counts more than MASTER_ADDR. */
const misleading = /^(GROUP_RANK|NCCL_EXT_ADDR|TORCHELASTIC_.*|OMPI_COMM_WORLD_.*)$/;

/** @throws ERR_LAUNCHER when a launcher started this process: each of its ranks would start a whole world. */
export function refuseLauncher(env: Environment): void {
  const variable = rankVariables.find((name) => env[name] !== undefined);
  if (variable === undefined) return;
  throw new NcclExtError(
    'ERR_LAUNCHER',
    `\`nccl-ext run\` is a launcher, but a launcher started it: ${variable} is ${env[variable]}.`,
    {
      help: [
        'Let that launcher start the script: torchrun --no-python --nproc-per-node 4 node script.mjs, or mpirun -n 4 node script.mjs.',
        `If none is at work here, unset ${variable}.`,
      ].join('\n'),
      field: variable,
      seen: env[variable],
    },
  );
}

/** The environments of all ranks; they share two free ports and a secret of this run. */
export async function rankEnvironments(
  env: Environment,
  ranks: number,
): Promise<Record<string, string | undefined>[]> {
  const [masterPort, port] = await freePorts(2);
  const token = randomBytes(32).toString('hex');
  const inherited = Object.fromEntries(Object.entries(env).filter(([name]) => !misleading.test(name)));
  return Array.from({ length: ranks }, (_, rank) => ({
    ...inherited,
    RANK: String(rank),
    WORLD_SIZE: String(ranks),
    LOCAL_RANK: String(rank),
    LOCAL_WORLD_SIZE: String(ranks),
    MASTER_ADDR: '127.0.0.1',
    MASTER_PORT: String(masterPort),
    // Else ranks meet at MASTER_PORT + 1, which nobody has found to be free.
    NCCL_EXT_PORT: String(port),
    NCCL_EXT_TOKEN: token,
  }));
}
