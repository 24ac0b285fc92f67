// SPDX-License-Identifier: Apache-2.0
// One rank per process: what a launcher said, and what the embedded backend cannot do.

import { describe, expect, it } from 'vitest';
import { init } from './init.js';

const alone = { RANK: '0', WORLD_SIZE: '1', LOCAL_RANK: '0', LOCAL_WORLD_SIZE: '1' };
const ofTwo = {
  RANK: '1',
  WORLD_SIZE: '2',
  LOCAL_RANK: '1',
  LOCAL_WORLD_SIZE: '2',
  MASTER_ADDR: '127.0.0.1',
  MASTER_PORT: '29500',
};

describe('init', () => {
  it('joins a world of one rank on the embedded backend', async () => {
    const comm = await init({ env: alone, backend: 'embedded' });
    try {
      expect([comm.rank, comm.size]).toEqual([0, 1]);
      const stream = comm.createStream();
      stream.barrier();
      await stream.synchronize();
    } finally {
      await comm.dispose();
    }
  });

  it('reads options from the environment that it was given', async () => {
    const env = { ...alone, NCCL_EXT_TRANSFER_PATH: 'sendrecv', NCCL_EXT_TIMEOUT_MS: '700' };
    const comm = await init({ env, backend: 'embedded' });
    expect([comm.transferPath, comm.timeoutMs]).toEqual(['sendrecv', 700]);
    await comm.dispose();
  });

  it('says how to launch when no launcher started the process', async () => {
    await expect(init({ env: {}, backend: 'embedded' })).rejects.toMatchObject({
      code: 'ERR_LAUNCHER',
      help: expect.stringMatching(/torchrun[\s\S]*mpirun[\s\S]*localWorld/),
    });
  });

  it('lists what it saw when the variables are incomplete', async () => {
    await expect(init({ env: { RANK: '3' }, backend: 'embedded' })).rejects.toMatchObject({
      code: 'ERR_LAUNCHER',
      message: expect.stringContaining('RANK=3'),
    });
  });

  it('refuses more than one process on the embedded backend and says what to use instead', async () => {
    await expect(init({ env: ofTwo, backend: 'embedded' })).rejects.toMatchObject({
      code: 'ERR_SINGLE_PROCESS',
      message: expect.stringMatching(/localWorld|cuda/),
    });
  });
});
