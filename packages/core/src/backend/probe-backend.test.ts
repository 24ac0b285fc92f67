// SPDX-License-Identifier: Apache-2.0
// What a GPU package finds on the machine, told without loading it; its failures are values.

import { describe, expect, it } from 'vitest';
import { context, type Fake, type project, working } from './fake-packages.test-util.js';
import { probeBackend } from './probe-backend.js';

describe('probeBackend', () => {
  const probe = {
    driver: { ok: true, value: { cuda: '13.0', devices: 2 } },
    devices: [],
    nccl: {
      ok: false,
      error: { code: 38, op: 'nccl', rank: -1, peer: -1, expected: '', seen: '', detail: 'x' },
    },
  };
  const probing: Fake = {
    code: `${working}\nexport function probe() { return ${JSON.stringify(probe)}; }`,
  };

  it('gives what the package finds, without its load()', async () => {
    const code = `${probing.code!.replace(/export function load.*/, '')}
export function load() { throw new Error('never called'); }`;
    expect(await probeBackend('auto', context({ cuda13: { code } }))).toEqual({
      backend: 'cuda13',
      probe,
      error: undefined,
    });
  });

  it('has nothing to tell of the embedded backend and of a package without probe()', async () => {
    const nothing = { probe: undefined, error: undefined };
    expect(await probeBackend('auto', context({}))).toEqual({ backend: 'embedded', ...nothing });
    expect(await probeBackend('embedded', context({ cuda13: probing }))).toMatchObject({
      backend: 'embedded',
    });
    expect(await probeBackend('auto', context({ cuda12: {} }))).toEqual({ backend: 'cuda12', ...nothing });
  });

  it.each([
    ['ERR_BACKEND_MISSING', {}, ''],
    ['ERR_BACKEND_CONFLICT', { cuda12: probing, cuda13: probing }, ''],
    ['ERR_BACKEND_VERSION', { cuda13: { ...probing, version: '0.1.0' } }, ''],
    ['ERR_BACKEND_LOAD', { cuda13: { code: "throw new Error('half written')" } }, 'half written'],
    [
      'ERR_BACKEND_LOAD',
      { cuda13: { code: `${working}\nexport function probe() { throw new Error('no dlopen'); }` } },
      'no dlopen',
    ],
  ] satisfies [string, Parameters<typeof project>[0], string][])(
    'gives %s instead of throwing it',
    async (code, packages, message) => {
      const { backend, error, ...rest } = await probeBackend('cuda', context(packages));
      expect([backend, rest.probe]).toEqual([undefined, undefined]);
      expect(error).toMatchObject({ code, message: expect.stringContaining(message) });
    },
  );
});
