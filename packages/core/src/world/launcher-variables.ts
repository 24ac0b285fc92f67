// SPDX-License-Identifier: Apache-2.0
// The variables of the launchers that nccl-ext knows, read strictly: every refusal shows all that was seen.

import { NcclExtError } from '../errors/nccl-ext-error.js';
import { integer } from '../options/option-kind.js';
import type { Environment } from '../options/resolve-options.js';

export type LauncherName = 'torchrun' | 'openmpi';
export type CountName = 'rank' | 'worldSize' | 'localRank' | 'localWorldSize';
export type Counts = { readonly [N in CountName]?: number };

export const countNames: readonly CountName[] = ['rank', 'worldSize', 'localRank', 'localWorldSize'];

export const countVariables: Readonly<Record<LauncherName, Readonly<Record<CountName, string>>>> = {
  // https://docs.pytorch.org/docs/stable/elastic/run.html, "Environment Variables"
  torchrun: {
    rank: 'RANK',
    worldSize: 'WORLD_SIZE',
    localRank: 'LOCAL_RANK',
    localWorldSize: 'LOCAL_WORLD_SIZE',
  },
  // https://docs.open-mpi.org/en/main/tuning-apps/environment-var.html
  openmpi: {
    rank: 'OMPI_COMM_WORLD_RANK',
    worldSize: 'OMPI_COMM_WORLD_SIZE',
    localRank: 'OMPI_COMM_WORLD_LOCAL_RANK',
    localWorldSize: 'OMPI_COMM_WORLD_LOCAL_SIZE',
  },
};

const allVariables: readonly string[] = [
  ...Object.values(countVariables.torchrun),
  'GROUP_RANK',
  'TORCHELASTIC_RUN_ID',
  'MASTER_ADDR',
  'MASTER_PORT',
  ...Object.values(countVariables.openmpi),
];

const howToLaunch = [
  'Start one process per rank: `torchrun --no-python --nproc-per-node 4 node app.mjs`, or',
  '`MASTER_ADDR=host MASTER_PORT=29500 mpirun -x MASTER_ADDR -x MASTER_PORT -n 4 node app.mjs`.',
  'For all ranks in this process, call localWorld({ ranks: 4 }) instead.',
].join('\n');

/** The launcher's variables of one environment. */
export class LauncherVariables {
  /** Names of the variables that are set. */
  readonly seen: readonly string[];
  readonly #env: Environment;

  constructor(env: Environment) {
    this.#env = env;
    this.seen = allVariables.filter((name) => env[name] !== undefined);
  }

  sees(launcher: LauncherName): boolean {
    return Object.values(countVariables[launcher]).some((name) => this.seen.includes(name));
  }

  /** What one launcher said; what it did not say is absent. */
  counts(launcher: LauncherName): Counts {
    const counts: { [N in CountName]?: number } = {};
    for (const name of countNames) {
      const least = name === 'worldSize' || name === 'localWorldSize' ? 1 : 0;
      const value = this.integer(countVariables[launcher][name], least, 0x7fff_ffff);
      if (value !== undefined) counts[name] = value;
    }
    return counts;
  }

  integer(variable: string, least: number, most: number): number | undefined {
    const text = this.#env[variable];
    if (text === undefined) return undefined;
    const kind = integer(least, most);
    const value = kind.fromText(text);
    if (value !== undefined) return value;
    throw this.refuse(`${variable} is ${JSON.stringify(text)}; it must be ${kind.allowed}`, variable);
  }

  missing(names: readonly string[]): NcclExtError {
    return this.refuse(`${names.join(', ')} ${names.length === 1 ? 'is' : 'are'} missing`, names[0]!);
  }

  refuse(problem: string, field: string, advice?: string): NcclExtError {
    const seen = this.seen.map((name) => `${name}=${this.#env[name]}`).join(', ');
    return new NcclExtError(
      'ERR_LAUNCHER',
      `The launcher's variables cannot be used: ${problem}. Seen: ${seen}.`,
      {
        help: advice === undefined ? howToLaunch : `${advice}\n${howToLaunch}`,
        field,
        seen: this.#env[field],
      },
    );
  }
}
