// SPDX-License-Identifier: Apache-2.0
// What is installed, what would be loaded and why, told without loading.

import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { describeBackends } from './describe-backends.js';
import { context, refusal, throwing } from './fake-packages.test-util.js';

describe('describeBackends', () => {
  it('says what is installed and what would be loaded, without loading', () => {
    const where = context({ cuda13: throwing('never called') }, { driver: '580.65.06', glibc: '2.36' });
    expect(describeBackends('auto', where)).toEqual({
      coreVersion: '0.2.0',
      requested: 'auto',
      driver: '580.65.06',
      glibc: '2.36',
      packages: [
        { name: 'cuda12', installed: false, version: undefined, path: undefined, problem: undefined },
        {
          name: 'cuda13',
          installed: true,
          version: '0.2.0',
          path: join(where.bases[0]!, '..', 'node_modules', '@nccl-ext', 'cuda13'),
          problem: undefined,
        },
      ],
      chosen: 'cuda13',
      reason: '@nccl-ext/cuda13@0.2.0 is the installed GPU backend',
      error: undefined,
    });
  });

  it('gives the error that loading would throw', async () => {
    for (const packages of [
      { cuda12: {}, cuda13: {} },
      { cuda12: { version: '0.1.0' } },
      { cuda12: { manifest: '' } },
    ]) {
      const where = context(packages);
      const { chosen, error } = describeBackends('auto', where);
      expect(chosen).toBeUndefined();
      expect(error?.toJSON()).toEqual((await refusal('auto', where)).toJSON());
    }
    expect(describeBackends('auto', context({ cuda12: { manifest: '{}' } })).packages[0]).toMatchObject({
      installed: true,
      version: undefined,
      problem: expect.stringContaining('version'),
    });
  });

  it('explains the embedded backend', () => {
    expect(describeBackends('auto', context({}))).toMatchObject({
      chosen: 'embedded',
      reason: 'no GPU backend is installed',
    });
    expect(describeBackends('embedded', context({}))).toMatchObject({
      chosen: 'embedded',
      reason: 'the embedded backend was asked for',
    });
  });
});
