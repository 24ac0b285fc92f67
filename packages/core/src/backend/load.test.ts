// SPDX-License-Identifier: Apache-2.0
// The one installed backend is loaded with its options, or refused when version, glibc or driver do not fit.

import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { context, type Fake, refusal, throwing } from './fake-packages.test-util.js';
import { loadBackend } from './load.js';

describe('one backend installed', () => {
  it.each(['auto', 'cuda', 'cuda13'] as const)('%s loads it', async (choice) => {
    const where = context(
      { cuda13: { config: { glibc: '>=2.34', driver: '>=580', nccl: '2.30.7' } } },
      { glibc: '2.36' },
    );
    expect(await loadBackend(choice, where)).toEqual({
      kind: 'cuda13',
      module: { info: { name: 'fake' } },
      version: '0.2.0',
      path: join(where.bases[0]!, '..', 'node_modules', '@nccl-ext', 'cuda13'),
      buildInfo: { version: '0.2.0', cudaMajor: 13 },
    });
  });

  it('the other name is refused, naming what is there', async () => {
    const error = await refusal('cuda12', context({ cuda13: {} }));
    expect(error).toMatchObject({ code: 'ERR_BACKEND_MISSING' });
    expect(error.message).toContain('@nccl-ext/cuda12 is not installed. @nccl-ext/cuda13@0.2.0 is.');
  });

  it.each(['0.1.0', '0.2.1', '0.2.0-next.1'])('version %s does not fit', async (version) => {
    const error = await refusal('auto', context({ cuda13: { version } }));
    expect(error).toMatchObject({ code: 'ERR_BACKEND_VERSION', expected: '0.2.0', seen: version });
    expect(error.message).toBe(
      `@nccl-ext/core is 0.2.0 but @nccl-ext/cuda13 is ${version}.\nRun \`npm i @nccl-ext/cuda13@0.2.0\`.`,
    );
  });

  it.each([
    ['2.31', 'found glibc 2.31', 'this system has 2.31'],
    [undefined, 'found no glibc', 'this system has none'],
  ])('glibc %s is too old for >=2.34', async (glibc, found, advice) => {
    const config = { glibc: '>=2.34' };
    const error = await refusal(
      'auto',
      context({ cuda12: { config } }, glibc === undefined ? {} : { glibc }),
    );
    expect(error).toMatchObject({ code: 'ERR_BACKEND_LOAD', expected: '>=2.34', seen: glibc });
    expect(error.message).toContain(`@nccl-ext/cuda12 needs glibc >= 2.34, ${found}`);
    expect(error.help).toContain(advice);
  });

  it('glibc is not asked for when the package states no floor', async () => {
    expect(await loadBackend('auto', context({ cuda12: {} }, {}))).toMatchObject({ kind: 'cuda12' });
  });

  it.each([
    ['550.90.07', 'found 550.90.07', '`npm i @nccl-ext/cuda12`'],
    ['470.57.02', 'found 470.57.02', 'Update the driver.'],
  ])('driver %s is too old for >=580', async (driver, found, advice) => {
    const where = context({ cuda13: { config: { driver: '>=580' } } }, { driver });
    const error = await refusal('auto', where);
    expect(error).toMatchObject({ code: 'ERR_DRIVER_TOO_OLD', expected: '>=580', seen: driver });
    expect(error.message).toContain(`CUDA 13 needs an NVIDIA driver >= 580, ${found}`);
    expect(error.help).toContain(advice);
  });

  it('a driver that cannot be read is left to the native code', async () => {
    const where = context({ cuda13: { config: { driver: '>=580' } } });
    expect(await loadBackend('auto', where)).toMatchObject({ kind: 'cuda13' });
  });
});

describe('options of the native code', () => {
  const echo: Fake = {
    code: `export const buildInfo = {}; export function load(options) { return { info: { details: options } }; }`,
  };

  it.each([[{}], [{ ncclLibrary: '/x/libnccl.so.2' }], [{ ncclLibrary: '/x/libnccl.so.2', ncclHome: '/y' }]])(
    'load() gets %j',
    async (options) => {
      expect(await loadBackend('auto', context({ cuda13: echo }), options)).toMatchObject({
        module: { info: { details: options } },
      });
    },
  );

  it('says what to do where a worker thread cannot set them', async () => {
    const where = context({ cuda13: throwing('a worker thread cannot set NCCL_HOME to "/y"') });
    expect((await refusal('auto', where)).help).toMatch(/NCCL_HOME for the process/);
  });
});
