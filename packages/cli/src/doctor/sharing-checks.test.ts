// SPDX-License-Identifier: Apache-2.0
// What stands between processes that would share GPU memory is named, with the way around it.

import { describe, expect, it } from 'vitest';
import { sharingChecks } from './sharing-checks.js';
import { hasSysPtrace, readSharingFacts, type SharingFacts } from './sharing-facts.js';

const open: SharingFacts = {
  kernel: '6.1.0-18-amd64',
  ptraceScope: undefined,
  maySysPtrace: false,
  filtered: false,
  sharedMemoryBytes: 8e9,
  mpsDirectory: '/tmp/nvidia-mps',
};

const line = (name: string, facts: Partial<SharingFacts>, env = {}) =>
  sharingChecks({ ...open, ...facts }, env).find((check) => check.name === name)!;

describe('sharing by file descriptor', () => {
  it.each<[string, Partial<SharingFacts>, string]>([
    ['is open without Yama', {}, 'ok'],
    ['is open with scope 0', { ptraceScope: 0 }, 'ok'],
    ['reaches children only with scope 1', { ptraceScope: 1 }, 'warning'],
    ['is closed with scope 2', { ptraceScope: 2 }, 'warning'],
    ['is closed with scope 3', { ptraceScope: 3 }, 'warning'],
    ['is open to CAP_SYS_PTRACE', { ptraceScope: 2, maySysPtrace: true, filtered: true }, 'ok'],
    ['may be filtered in a container', { filtered: true }, 'warning'],
    ['needs kernel 5.6', { kernel: '5.4.0-150-generic' }, 'warning'],
    ['has it from 5.6 on', { kernel: '5.10.0' }, 'ok'],
  ])('%s', (_, facts, status) => {
    const check = line('Sharing by fd', facts);
    expect(check.status).toBe(status);
    if (status === 'warning') expect(check.fix).toContain('SCM_RIGHTS');
  });
});

describe('/dev/shm', () => {
  it.each([
    [67_108_864, 'warning'],
    [undefined, 'warning'],
    [1 << 30, 'ok'],
  ] as const)('of %s bytes: %s', (sharedMemoryBytes, status) => {
    expect(line('/dev/shm', { sharedMemoryBytes }).status).toBe(status);
  });
});

describe('MPS', () => {
  it('is not needed, and told how to start', () => {
    const check = line('MPS', { mpsDirectory: undefined });
    expect(check.status).toBe('absent');
    expect(check.fix).toContain('nvidia-cuda-mps-control -d');
  });

  it('with a share of SMs per process is a trap', () => {
    expect(line('MPS', {}).status).toBe('ok');
    expect(line('MPS', {}, { CUDA_MPS_ACTIVE_THREAD_PERCENTAGE: '100' }).status).toBe('ok');
    const check = line('MPS', {}, { CUDA_MPS_ACTIVE_THREAD_PERCENTAGE: '25' });
    expect(check.status).toBe('warning');
    expect(check.fix).toContain('NCCL_EXT_SMS');
  });
});

describe('readSharingFacts', () => {
  it('finds CAP_SYS_PTRACE in the capabilities of /proc/self/status', () => {
    expect(hasSysPtrace('CapPrm:\t0\nCapEff:\t0000000000080000\n')).toBe(true);
    expect(hasSysPtrace('CapEff:\t000001fffff7ffff\n')).toBe(false);
    expect(hasSysPtrace('CapEff:\t000001ffffffffff\n')).toBe(true);
    expect(hasSysPtrace('')).toBe(false);
  });

  it('finds no MPS daemon in an empty directory', () => {
    const facts = readSharingFacts({ CUDA_MPS_PIPE_DIRECTORY: '/nowhere' });
    expect(facts.mpsDirectory).toBeUndefined();
  });
});
