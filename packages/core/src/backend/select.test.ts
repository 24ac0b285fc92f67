// SPDX-License-Identifier: Apache-2.0
// Which backend is chosen where none is installed or both are, and the advice where none can be.

import { describe, expect, it, vi } from 'vitest';
import { context, refusal } from './fake-packages.test-util.js';
import { loadBackend } from './load.js';

describe('no backend installed', () => {
  it('auto gives the embedded backend with exactly one process warning', async () => {
    const emitted = vi.spyOn(process, 'emitWarning').mockImplementation(() => {});
    expect(await loadBackend('embedded', context({}))).toEqual({ kind: 'embedded' });
    expect(emitted).not.toHaveBeenCalled();
    expect(await loadBackend('auto', context({}, { driver: '580.159.03' }))).toEqual({ kind: 'embedded' });
    expect(await loadBackend('auto', context({}))).toEqual({ kind: 'embedded' });
    expect(emitted).toHaveBeenCalledTimes(1);
    expect(emitted).toHaveBeenCalledWith(
      expect.stringContaining('Driver 580.159.03 found: run `npm i @nccl-ext/cuda13`'),
      { type: 'NcclExtWarning', code: 'NCCL_EXT_EMBEDDED_BACKEND' },
    );
    emitted.mockRestore();
  });

  it.each([
    [undefined, 'No NVIDIA driver was found. With one, run `npm i @nccl-ext/cuda13`'],
    ['580.159.03', 'Driver 580.159.03 found: run `npm i @nccl-ext/cuda13`'],
    ['570.86.10', 'Driver 570.86.10 found: run `npm i @nccl-ext/cuda12`'],
    ['470.57.02', 'Driver 470.57.02 found, but CUDA 12 needs >= 525: update it'],
  ])('cuda is refused with advice for driver %s', async (driver, advice) => {
    const error = await refusal('cuda', context({}, driver === undefined ? {} : { driver }));
    expect(error).toMatchObject({ code: 'ERR_BACKEND_MISSING', help: expect.stringContaining(advice) });
    expect(error.help).toContain("backend: 'embedded'");
  });

  it('cuda13 is refused by name', async () => {
    const error = await refusal('cuda13', context({}, { driver: '550.90.07' }));
    expect(error).toMatchObject({ code: 'ERR_BACKEND_MISSING', expected: 'cuda13' });
    expect(error.message).toContain('@nccl-ext/cuda13 is not installed.');
    expect(error.help).toContain('CUDA 13 needs >= 580: update it, or run `npm i @nccl-ext/cuda12`');
  });
});

describe('both backends installed', () => {
  const both = { cuda12: { version: '0.1.0' }, cuda13: {} };

  it.each(['auto', 'cuda'] as const)('%s is a conflict', async (choice) => {
    const error = await refusal(choice, context(both));
    expect(error.code).toBe('ERR_BACKEND_CONFLICT');
    expect(error.message).toContain('Both @nccl-ext/cuda12@0.1.0 and @nccl-ext/cuda13@0.2.0 are installed.');
  });

  it.each([
    ['580.65.06', 'Driver 580.65.06 supports CUDA 13: run `npm uninstall @nccl-ext/cuda12`.'],
    ['550.90.07', 'does not support CUDA 13 (needs >= 580): run `npm uninstall @nccl-ext/cuda13`.'],
    [undefined, 'Run `npm uninstall @nccl-ext/cuda12` or `npm uninstall @nccl-ext/cuda13`.'],
  ])('driver %s decides which to uninstall', async (driver, advice) => {
    const error = await refusal('auto', context(both, driver === undefined ? {} : { driver }));
    expect(error.help).toContain(advice);
    expect(error.help).toContain('NCCL_EXT_BACKEND=cuda12');
  });

  it('a broken one is a conflict too', async () => {
    const error = await refusal('auto', context({ cuda12: { manifest: '{' }, cuda13: {} }));
    expect(error).toMatchObject({ code: 'ERR_BACKEND_CONFLICT' });
    expect(error.message).toContain('@nccl-ext/cuda12 (broken)');
  });

  it('embedded and a name pick one', async () => {
    expect(await loadBackend('embedded', context(both))).toEqual({ kind: 'embedded' });
    expect(await loadBackend('cuda13', context(both))).toMatchObject({ kind: 'cuda13', version: '0.2.0' });
    expect(await refusal('cuda12', context(both))).toMatchObject({ code: 'ERR_BACKEND_VERSION' });
  });
});
