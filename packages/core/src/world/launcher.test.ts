// SPDX-License-Identifier: Apache-2.0
// Each launcher's variables as the launcher sets them, and every way in which they can be wrong.

import { describe, expect, it } from 'vitest';
import { NcclExtError } from '../errors/nccl-ext-error.js';
import type { Environment } from '../options/resolve-options.js';
import { readLauncher } from './launcher.js';

const torchrun = {
  RANK: '5',
  WORLD_SIZE: '8',
  LOCAL_RANK: '1',
  LOCAL_WORLD_SIZE: '4',
  GROUP_RANK: '1',
  TORCHELASTIC_RUN_ID: 'none',
  MASTER_ADDR: 'node-0',
  MASTER_PORT: '29500',
};
const openmpi = {
  OMPI_COMM_WORLD_RANK: '5',
  OMPI_COMM_WORLD_SIZE: '8',
  OMPI_COMM_WORLD_LOCAL_RANK: '1',
  OMPI_COMM_WORLD_LOCAL_SIZE: '4',
};
const meeting = { MASTER_ADDR: 'node-0', MASTER_PORT: '29500' };
const launch = { rank: 5, worldSize: 8, localRank: 1, localWorldSize: 4, address: 'node-0', port: 29501 };

function without(env: Environment, ...names: string[]): Environment {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !names.includes(name)));
}

function refusal(env: Environment): NcclExtError {
  try {
    readLauncher(env);
  } catch (error) {
    if (NcclExtError.is(error, 'ERR_LAUNCHER')) return error;
    throw error;
  }
  throw new Error('accepted');
}

describe('readLauncher', () => {
  it('gives undefined when no variable is set', () => {
    expect(readLauncher({ HOME: '/', PATH: '/bin', NCCL_EXT_PORT: '1' })).toBeUndefined();
  });

  it('reads torchrun', () => {
    expect(readLauncher(torchrun)).toEqual({ launcher: 'torchrun', ...launch });
  });

  it('reads Open MPI with a meeting point', () => {
    expect(readLauncher({ ...openmpi, ...meeting })).toEqual({ launcher: 'openmpi', ...launch });
    const env = { ...openmpi, NCCL_EXT_ADDR: '10.0.0.1', NCCL_EXT_PORT: '4000' };
    expect(readLauncher(env)).toEqual({ launcher: 'openmpi', ...launch, address: '10.0.0.1', port: 4000 });
  });

  it('prefers options to NCCL_EXT_* and those to MASTER_*', () => {
    const env = { ...torchrun, NCCL_EXT_ADDR: 'other', NCCL_EXT_PORT: '4000' };
    expect(readLauncher(env)).toMatchObject({ address: 'other', port: 4000 });
    expect(readLauncher(env, { address: 'third', port: 5000 })).toMatchObject({
      address: 'third',
      port: 5000,
    });
  });

  it('needs no meeting point for one rank', () => {
    const one = { RANK: '0', WORLD_SIZE: '1', LOCAL_RANK: '0', LOCAL_WORLD_SIZE: '1' };
    expect(readLauncher(one)).toMatchObject({ worldSize: 1, address: '127.0.0.1', port: 0 });
    expect(readLauncher({ ...one, ...meeting })).toMatchObject({ address: 'node-0', port: 29501 });
  });

  it('takes torchrun where both launchers agree', () => {
    expect(readLauncher({ ...openmpi, ...torchrun })).toEqual({ launcher: 'torchrun', ...launch });
  });

  it('lets Open MPI complete what a script set by hand', () => {
    const env = { ...openmpi, ...meeting, RANK: '5', WORLD_SIZE: '8' };
    expect(readLauncher(env)).toEqual({ launcher: 'openmpi', ...launch });
  });

  it('refuses launchers that contradict each other', () => {
    const error = refusal({ ...openmpi, ...torchrun, RANK: '6' });
    expect(error.message).toContain('RANK and OMPI_COMM_WORLD_RANK contradict each other');
    expect(error.message).toContain('RANK=6');
    expect(error.message).toContain('OMPI_COMM_WORLD_RANK=5');
    expect(error.help).toContain('Unset the variables');
  });

  it.each([
    [without(torchrun, 'LOCAL_RANK', 'LOCAL_WORLD_SIZE'), 'LOCAL_RANK, LOCAL_WORLD_SIZE are missing'],
    [without(torchrun, 'WORLD_SIZE'), 'WORLD_SIZE is missing'],
    [without(torchrun, 'MASTER_ADDR'), 'MASTER_ADDR (or NCCL_EXT_ADDR) is missing'],
    [without(torchrun, 'MASTER_PORT'), 'MASTER_PORT (or NCCL_EXT_PORT) is missing'],
    [meeting, 'RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE are missing'],
    [{ TORCHELASTIC_RUN_ID: 'job' }, 'RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE are missing'],
    [openmpi, 'MASTER_ADDR (or NCCL_EXT_ADDR), MASTER_PORT (or NCCL_EXT_PORT) are missing'],
    [without(openmpi, 'OMPI_COMM_WORLD_SIZE'), 'OMPI_COMM_WORLD_SIZE is missing'],
  ])('refuses incomplete variables (%#), saying what it saw and what is missing', (env, problem) => {
    const error = refusal(env);
    const seen = Object.entries(env).map(([name, value]) => `${name}=${value}`);
    expect(error.message).toContain(`: ${problem}. Seen: `);
    for (const pair of seen) expect(error.message).toContain(pair);
    expect(error.help).toContain('torchrun --no-python --nproc-per-node');
    expect(error.help).toContain('mpirun');
    expect(error.help).toContain('localWorld');
  });

  it.each(['3x', '-1', '', ' 3', '1.0', '0x3', '2147483648'])('refuses the value %j everywhere', (text) => {
    for (const name of Object.keys(torchrun).filter(
      (key) => !['MASTER_ADDR', 'TORCHELASTIC_RUN_ID'].includes(key),
    )) {
      expect(refusal({ ...torchrun, [name]: text })).toMatchObject({
        field: name,
        seen: text,
        message: expect.stringContaining(`${name} is ${JSON.stringify(text)}; it must be an integer from`),
      });
    }
    for (const name of Object.keys(openmpi)) {
      expect(refusal({ ...openmpi, ...meeting, [name]: text })).toMatchObject({ field: name, seen: text });
    }
  });

  it.each([
    [{ ...torchrun, RANK: '8' }, 'RANK is 8, but may be at most 7 here'],
    [{ ...torchrun, LOCAL_RANK: '4' }, 'LOCAL_RANK is 4, but may be at most 3 here'],
    [{ ...torchrun, LOCAL_WORLD_SIZE: '9' }, 'LOCAL_WORLD_SIZE is 9, but may be at most 8 here'],
    [{ ...torchrun, WORLD_SIZE: '0' }, 'WORLD_SIZE is "0"; it must be an integer from 1'],
    [
      { ...openmpi, ...meeting, OMPI_COMM_WORLD_RANK: '8' },
      'OMPI_COMM_WORLD_RANK is 8, but may be at most 7 here',
    ],
    [{ ...torchrun, MASTER_PORT: '0' }, 'MASTER_PORT is "0"'],
    [{ ...torchrun, MASTER_PORT: '65535' }, 'MASTER_PORT is 65535 and the ports end there'],
    [{ ...torchrun, MASTER_ADDR: ' ' }, 'MASTER_ADDR is empty'],
  ])('refuses values out of range (%#)', (env, problem) => {
    expect(refusal(env).message).toContain(problem);
  });

  it('passes on wrong options', () => {
    expect(() => readLauncher({ ...torchrun, NCCL_EXT_PORT: 'x' })).toThrowError(
      expect.objectContaining({ code: 'ERR_INVALID_ARGUMENT', field: 'NCCL_EXT_PORT' }),
    );
    expect(() => readLauncher(torchrun, { port: 70_000 })).toThrowError(
      expect.objectContaining({ code: 'ERR_INVALID_ARGUMENT', field: 'port' }),
    );
  });
});
