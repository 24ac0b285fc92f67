// SPDX-License-Identifier: Apache-2.0
// The variables of the launchers that nccl-ext knows, read strictly: every refusal shows all that was seen.

import { NcclExtError } from '../errors/nccl-ext-error.js';
import { integer } from '../options/option-kind.js';
import type { Environment } from '../options/resolve-options.js';
import { firstNode, tasksOnNode } from './slurm.js';

export type LauncherName = 'torchrun' | 'openmpi' | 'slurm' | 'kubernetes';
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
  // https://slurm.schedmd.com/srun.html, "OUTPUT ENVIRONMENT VARIABLES". Those of the step: a batch script has the others too.
  slurm: {
    rank: 'SLURM_PROCID',
    worldSize: 'SLURM_STEP_NUM_TASKS',
    localRank: 'SLURM_LOCALID',
    localWorldSize: 'SLURM_STEP_TASKS_PER_NODE',
  },
  // https://kubernetes.io/docs/tasks/job/indexed-parallel-processing-static/. The Job's manifest sets WORLD_SIZE; a pod is one rank.
  kubernetes: {
    rank: 'JOB_COMPLETION_INDEX',
    worldSize: 'WORLD_SIZE',
    localRank: 'LOCAL_RANK',
    localWorldSize: 'LOCAL_WORLD_SIZE',
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

const stepVariables: readonly string[] = [
  ...Object.values(countVariables.slurm),
  'SLURM_NODEID',
  'SLURM_STEP_NODELIST',
];

const howToLaunch = [
  'Start one process per rank: `torchrun --no-python --nproc-per-node 4 node app.mjs`, or',
  '`MASTER_ADDR=host MASTER_PORT=29500 mpirun -x MASTER_ADDR -x MASTER_PORT -n 4 node app.mjs`, or',
  '`MASTER_PORT=29500 srun -n 4 node app.mjs`.',
  'For all ranks in this process, call localWorld({ ranks: 4 }) instead.',
].join('\n');

/** The launcher's variables of one environment. */
export class LauncherVariables {
  /** Names of the variables that are set. */
  readonly seen: readonly string[];
  readonly #env: Environment;

  constructor(env: Environment) {
    this.#env = env;
    const set = (name: string): boolean => env[name] !== undefined;
    const seen = allVariables.filter(set);
    // The schedulers' own say nothing alone: a pod, and a shell in an allocation, may hold a whole world.
    if (seen.length > 0 && set('JOB_COMPLETION_INDEX')) seen.push('JOB_COMPLETION_INDEX');
    if (set('SLURM_STEP_NUM_TASKS')) seen.push(...stepVariables.filter(set));
    this.seen = seen;
  }

  sees(launcher: LauncherName): boolean {
    return Object.values(countVariables[launcher]).some((name) => this.seen.includes(name));
  }

  /** What one launcher said; what it did not say is absent. */
  counts(launcher: LauncherName): Counts {
    const counts: { [N in CountName]?: number } = {};
    for (const name of countNames) {
      const least = name === 'worldSize' || name === 'localWorldSize' ? 1 : 0;
      const variable = countVariables[launcher][name];
      const value =
        launcher === 'slurm' && name === 'localWorldSize'
          ? this.#tasksHere(variable)
          : this.integer(variable, least, 0x7fff_ffff);
      if (value !== undefined) counts[name] = value;
    }
    return counts;
  }

  #tasksHere(variable: string): number | undefined {
    const list = this.#env[variable];
    if (list === undefined) return undefined;
    const node = this.integer('SLURM_NODEID', 0, 0x7fff_ffff);
    if (node === undefined) throw this.missing(['SLURM_NODEID']);
    const tasks = tasksOnNode(list, node);
    if (tasks !== undefined) return tasks;
    throw this.refuse(`${variable} is ${JSON.stringify(list)}, which has no tasks of node ${node}`, variable);
  }

  /** The scheduler that numbered this process, for what no launcher said. */
  scheduler(): { readonly launcher: 'slurm' | 'kubernetes'; readonly counts: Counts } | undefined {
    if (this.seen.includes('SLURM_STEP_NUM_TASKS'))
      return { launcher: 'slurm', counts: this.counts('slurm') };
    if (!this.seen.includes('JOB_COMPLETION_INDEX')) return undefined;
    return {
      launcher: 'kubernetes',
      counts: { localRank: 0, localWorldSize: 1, ...this.counts('kubernetes') },
    };
  }

  /** The node of task 0, as srun lists it. */
  firstNode(): string | undefined {
    const variable = 'SLURM_STEP_NODELIST';
    const list = this.seen.includes(variable) ? this.#env[variable] : undefined;
    if (list === undefined) return undefined;
    const node = firstNode(list);
    if (node !== undefined) return node;
    throw this.refuse(`${variable} is ${JSON.stringify(list)}; it must be a list of nodes`, variable);
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
