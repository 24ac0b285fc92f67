// SPDX-License-Identifier: Apache-2.0
// Ranks that a scheduler numbers: steps of srun, and indexed Jobs of Kubernetes.

import { describe, expect, it } from 'vitest';
import { NcclExtError } from '../errors/nccl-ext-error.js';
import type { Environment } from '../options/resolve-options.js';
import { readLauncher } from './launcher.js';

// Task 5 of `srun -N 2 --ntasks-per-node 4`.
const slurm = {
  SLURM_JOB_ID: '1234',
  SLURM_PROCID: '5',
  SLURM_NTASKS: '8',
  SLURM_LOCALID: '1',
  SLURM_NODEID: '1',
  SLURM_STEP_NUM_TASKS: '8',
  SLURM_STEP_TASKS_PER_NODE: '4(x2)',
  SLURM_STEP_NODELIST: 'gpu[03-04]',
};
const kubernetes = {
  JOB_COMPLETION_INDEX: '2',
  WORLD_SIZE: '4',
  MASTER_ADDR: 'train-0.train',
  MASTER_PORT: '29500',
};
const torchrun = { RANK: '3', WORLD_SIZE: '4', LOCAL_RANK: '1', LOCAL_WORLD_SIZE: '2' };
const meeting = { MASTER_ADDR: 'node-0', MASTER_PORT: '29500' };

function without(env: Environment, ...names: string[]): Environment {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !names.includes(name)));
}

function refusal(env: Environment): string {
  try {
    readLauncher(env);
  } catch (error) {
    if (NcclExtError.is(error, 'ERR_LAUNCHER')) return error.message;
    throw error;
  }
  throw new Error('accepted');
}

describe('readLauncher under srun', () => {
  const launch = { launcher: 'slurm', rank: 5, worldSize: 8, localRank: 1, localWorldSize: 4 };

  it('reads the step, and meets on its first node', () => {
    const env = { ...slurm, MASTER_PORT: '29500' };
    expect(readLauncher(env)).toEqual({ ...launch, address: 'gpu03', port: 29501 });
    expect(readLauncher({ ...slurm, NCCL_EXT_PORT: '4000' })).toEqual({
      ...launch,
      address: 'gpu03',
      port: 4000,
    });
    expect(readLauncher({ ...slurm, ...meeting })).toMatchObject({ address: 'node-0' });
  });

  it('counts the tasks of this node where nodes differ', () => {
    const env = { ...slurm, ...meeting, SLURM_STEP_TASKS_PER_NODE: '5,3' };
    expect(readLauncher({ ...env, SLURM_PROCID: '7', SLURM_LOCALID: '2' })).toMatchObject({
      localRank: 2,
      localWorldSize: 3,
    });
  });

  it('completes what a script set by hand, which must agree', () => {
    expect(readLauncher({ ...slurm, ...meeting, WORLD_SIZE: '8' })).toMatchObject(launch);
    expect(refusal({ ...slurm, ...meeting, WORLD_SIZE: '2' })).toContain(
      'WORLD_SIZE and SLURM_STEP_NUM_TASKS contradict each other',
    );
  });

  it('leaves it to a launcher that srun started', () => {
    expect(readLauncher({ ...slurm, ...torchrun, ...meeting })).toMatchObject({
      launcher: 'torchrun',
      rank: 3,
      worldSize: 4,
    });
  });

  it('does not take a batch script for a rank, nor a step of one task for more', () => {
    const batch = { SLURM_JOB_ID: '1234', SLURM_PROCID: '0', SLURM_LOCALID: '0', SLURM_NTASKS: '8' };
    expect(readLauncher(batch)).toBeUndefined();
    const shell = { ...batch, SLURM_STEP_NUM_TASKS: '1', SLURM_STEP_TASKS_PER_NODE: '1', SLURM_NODEID: '0' };
    expect(readLauncher(shell)).toMatchObject({ launcher: 'slurm', rank: 0, worldSize: 1 });
  });

  it.each([
    [slurm, 'MASTER_PORT (or NCCL_EXT_PORT) is missing'],
    [without(slurm, 'SLURM_STEP_NODELIST'), 'MASTER_ADDR (or NCCL_EXT_ADDR), MASTER_PORT'],
    [without(slurm, 'SLURM_PROCID', 'SLURM_LOCALID'), 'SLURM_PROCID, SLURM_LOCALID are missing'],
    [without(slurm, 'SLURM_NODEID'), 'SLURM_NODEID is missing'],
    [{ ...slurm, SLURM_NODEID: '2' }, 'SLURM_STEP_TASKS_PER_NODE is "4(x2)", which has no tasks of node 2'],
    [{ ...slurm, SLURM_STEP_NODELIST: 'gpu[' }, 'SLURM_STEP_NODELIST is "gpu["; it must be a list of nodes'],
    [{ ...slurm, SLURM_PROCID: '8' }, 'SLURM_PROCID is 8, but may be at most 7 here'],
    [{ ...slurm, SLURM_LOCALID: 'x' }, 'SLURM_LOCALID is "x"; it must be an integer from 0'],
  ])('refuses what is incomplete or wrong (%#)', (env, problem) => {
    const message = refusal(env);
    expect(message).toContain(problem);
    expect(message).toContain('SLURM_STEP_NUM_TASKS=8');
  });
});

describe('readLauncher in an indexed Job of Kubernetes', () => {
  const launch = {
    launcher: 'kubernetes',
    rank: 2,
    worldSize: 4,
    localRank: 0,
    localWorldSize: 1,
    address: 'train-0.train',
    port: 29501,
  };

  it('takes the index for the rank, and a pod for a rank', () => {
    expect(readLauncher(kubernetes)).toEqual(launch);
  });

  it('leaves it to a launcher inside the pod', () => {
    expect(readLauncher({ ...kubernetes, ...torchrun })).toMatchObject({ launcher: 'torchrun', rank: 3 });
  });

  it('does not take a pod without a world for a rank', () => {
    expect(readLauncher({ JOB_COMPLETION_INDEX: '2' })).toBeUndefined();
  });

  it.each([
    [without(kubernetes, 'WORLD_SIZE'), 'WORLD_SIZE is missing'],
    [without(kubernetes, 'MASTER_ADDR'), 'MASTER_ADDR (or NCCL_EXT_ADDR) is missing'],
    [{ ...kubernetes, JOB_COMPLETION_INDEX: '4' }, 'JOB_COMPLETION_INDEX is 4, but may be at most 3 here'],
    [{ ...kubernetes, RANK: '1' }, 'RANK and JOB_COMPLETION_INDEX contradict each other'],
  ])('refuses what is incomplete or wrong (%#)', (env, problem) => {
    expect(refusal(env)).toContain(problem);
  });
});
