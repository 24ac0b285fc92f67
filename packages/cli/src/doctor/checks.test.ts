// SPDX-License-Identifier: Apache-2.0
// Every line of doctor that is not right says its fix.

import { errorNumbers, NcclExtError } from '@nccl-ext/core';
import { describe, expect, it } from 'vitest';
import { styleFor } from '../output/style.js';
import { backendChecks, probeChecks } from './backend-checks.js';
import { failed, fixOf, ok, warning } from './check.js';
import { gpu } from './device.test-util.js';
import { doctorText } from './doctor-text.js';
import { launcherCheck } from './launcher-check.js';
import { nodeCheck } from './machine-checks.js';

describe('nodeCheck', () => {
  it.each([
    ['20.19.0', 'ok'],
    ['20.20.2', 'ok'],
    ['22.0.0', 'ok'],
    ['20.18.9', 'failed'],
    ['18.20.0', 'failed'],
    ['23.0.0-nightly', 'ok'],
  ])('%s is %s', (version, status) => {
    const check = nodeCheck('>=20.19.0', version);
    expect(check.status).toBe(status);
    expect(check.fix === undefined).toBe(status === 'ok');
  });
});

describe('backendChecks', () => {
  it('lists what a machine without a GPU lacks, with fixes, and is content', async () => {
    const { checks, chosen } = await backendChecks('embedded');
    expect(chosen).toBe('embedded');
    expect(checks.map(({ name }) => name)).toEqual(
      expect.arrayContaining(['Backend', 'Driver', 'CUDA', 'NCCL', 'GPUs', 'Topology']),
    );
    for (const { status, fix } of checks) expect(fix === undefined).toBe(status === 'ok');
    expect(checks.some(({ status }) => status === 'failed')).toBe(false);
  });
});

describe('probeChecks', () => {
  const driver = { ok: true, value: { cuda: '13.0', devices: 1 } } as const;
  const nccl = { ok: true, value: { path: '/x/libnccl.so.2', version: '2.30.7', cudaMajor: 13 } } as const;
  const lost = (code: keyof typeof errorNumbers, detail: string, help: string) => {
    const error = {
      code: errorNumbers[code],
      op: 'x',
      rank: -1,
      peer: -1,
      expected: '',
      seen: '',
      detail,
      help,
    };
    return { ok: false, error } as const;
  };

  it('shows what the native code found', () => {
    expect(probeChecks({ driver, devices: [gpu(0)], nccl }, { driver: '580.65.06' })).toEqual([
      ok('Driver', 'NVIDIA 580.65.06'),
      ok('CUDA', '13.0 is the newest that the driver runs'),
      ok('NCCL', '2.30.7 for CUDA 13 in /x/libnccl.so.2'),
      ok('GPUs', '1'),
      ok('GPU 0', expect.stringContaining('NVIDIA H200') as unknown as string),
    ]);
  });

  it('shows what is missing with its fix, and what hangs on it', () => {
    const probe = {
      driver: lost('ERR_DRIVER_MISSING', 'there is no NVIDIA driver', 'install one'),
      devices: [],
      nccl: lost('ERR_NCCL_NOT_FOUND', 'NCCL was not found', 'nccl-ext nccl install'),
    };
    expect(probeChecks(probe, { driver: undefined })).toEqual([
      failed('Driver', 'there is no NVIDIA driver', 'install one'),
      expect.objectContaining({ name: 'CUDA', status: 'absent', fix: 'See the line Driver.' }),
      failed('NCCL', 'NCCL was not found', 'nccl-ext nccl install'),
      expect.objectContaining({ name: 'GPUs', status: 'absent', fix: 'See the line Driver.' }),
    ]);
  });
});

describe('fixOf', () => {
  it('refers a wrong variable to its line, and leaves a bug to be reported', () => {
    const wrong = new NcclExtError('ERR_INVALID_ARGUMENT', 'X is "abc".', { field: 'X' });
    expect(fixOf(wrong, 'report it')).toBe('See the line X.');
    expect(fixOf(new NcclExtError('ERR_TIMEOUT', 'late', { help: 'wait' }), 'report it')).toBe('wait');
    expect(fixOf(new Error('odd'), 'report it')).toBe('report it');
  });
});

describe('launcherCheck', () => {
  it('shows what a launcher said', () => {
    const env = { RANK: '1', WORLD_SIZE: '4', LOCAL_RANK: '1', LOCAL_WORLD_SIZE: '4' };
    const check = launcherCheck({ ...env, MASTER_ADDR: 'host', MASTER_PORT: '29500' });
    expect(check.found).toBe('torchrun: rank 1 of 4, meeting at host:29501');
  });

  it('fails half of a launch', () => {
    expect(launcherCheck({ RANK: '1' })).toEqual(
      expect.objectContaining({ status: 'failed', fix: expect.stringContaining('torchrun') }),
    );
  });

  it('needs none', () => {
    expect(launcherCheck({}).status).toBe('ok');
  });
});

describe('doctorText', () => {
  it('puts the fix under its line and ends with a verdict', () => {
    const text = doctorText(
      {
        version: '1.2.3',
        ok: false,
        backend: 'embedded',
        checks: [
          ok('Node.js', '20'),
          warning('X', 'is odd', 'unset it'),
          failed('Driver', 'old:\n3 of 4', 'update\nor not'),
        ],
        options: [{ option: 'workers', variable: 'NCCL_EXT_WORKERS', value: null, origin: 'default' }],
      },
      styleFor({}, {}),
    );
    expect(text).toBe(
      [
        'nccl-ext 1.2.3',
        '',
        '  ok    Node.js  20',
        '  warn  X        is odd',
        '                 fix: unset it',
        '  FAIL  Driver   old:',
        '                 3 of 4',
        '                 fix: update',
        '                 fix: or not',
        '',
        'Options in effect',
        '  workers  not set  default',
        '',
        'Not usable as it is: 1 of 3 lines failed.',
        '',
      ].join('\n'),
    );
  });
});
