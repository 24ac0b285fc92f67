// SPDX-License-Identifier: Apache-2.0
// Options of a call reach a GPU backend, here a fake package that tells what it was given.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { contractVersion } from '../contract/index.js';
import { init } from './init.js';
import { localWorld } from './local-world.js';

const { root } = vi.hoisted(() => ({ root: { path: '' } }));
vi.mock('../backend/loader-context.js', () => ({
  processContext: () => ({
    bases: [join(root.path, 'package.json')],
    machine: { driver: () => undefined, glibc: () => '2.36' },
    coreVersion: '0.2.0',
  }),
}));

// Making ranks fails with a record whose detail is what the package was given.
const code = `export const buildInfo = {};
export function load(options) {
  const told = (config) => ({ ok: false, error: { code: 37, op: 'x', rank: -1, peer: -1, expected: '', seen: '',
    detail: JSON.stringify({ options, token: config.token ?? null, sms: config.sms }) } });
  return {
    info: { name: 'cuda13', version: '0.2.0', contractVersion: ${contractVersion}, details: {} },
    runtime: { createLocalRanks: async (config) => told(config), joinRank: async (config) => told(config) },
    dispose: async () => {},
  };
}`;

root.path = mkdtempSync(join(tmpdir(), 'nccl-ext-open-'));
const directory = join(root.path, 'node_modules', '@nccl-ext', 'cuda13');
mkdirSync(directory, { recursive: true });
const exports = { '.': './index.js', './package.json': './package.json' };
const manifest = { name: '@nccl-ext/cuda13', version: '0.2.0', type: 'module', exports };
writeFileSync(join(directory, 'package.json'), JSON.stringify(manifest));
writeFileSync(join(directory, 'index.js'), code);
afterAll(() => rmSync(root.path, { recursive: true }));

async function told(made: Promise<unknown>): Promise<unknown> {
  const error = await made.then(
    () => new Error('made'),
    (thrown: Error) => thrown,
  );
  return JSON.parse(error.message);
}

describe('options for the native code', () => {
  it('come from the call of localWorld', async () => {
    const options = { ncclLibrary: '/x/libnccl.so.2', ncclHome: '/y' };
    const made = localWorld({ ranks: 1, backend: 'cuda13', sms: 8, ...options });
    expect(await told(made)).toMatchObject({ options, sms: [8] });
  });

  const launch = { LOCAL_RANK: '1', LOCAL_WORLD_SIZE: '2', MASTER_ADDR: 'host', MASTER_PORT: '29500' };
  const env = { RANK: '1', WORLD_SIZE: '2', ...launch };

  it('come from the call or the environment of init', async () => {
    const given = {
      backend: 'cuda13',
      env: { ...env, NCCL_HOME: '/z', NCCL_EXT_TOKEN: 'theirs', NCCL_EXT_SMS: '3' },
    } as const;
    expect(await told(init(given))).toEqual({ options: { ncclHome: '/z' }, token: 'theirs', sms: 3 });
    expect(await told(init({ ...given, ncclHome: '/y', token: 'ours' }))).toEqual({
      options: { ncclHome: '/y' },
      token: 'ours',
      sms: 3,
    });
  });

  it('come by rank, and init takes its own', async () => {
    const shares = { backend: 'cuda13', env: { ...env, NCCL_EXT_SMS: '28,4' } } as const;
    expect(await told(init(shares))).toMatchObject({ sms: 4 });
    expect(await told(localWorld({ ranks: 2, backend: 'cuda13', sms: [28, 0] }))).toMatchObject({
      sms: [28, 0],
    });
    for (const made of [
      init({ ...shares, sms: [1, 2, 3] }),
      localWorld({ ranks: 3, backend: 'cuda13', sms: [1, 2] }),
    ])
      await expect(made).rejects.toMatchObject({ code: 'ERR_INVALID_ARGUMENT', field: 'sms' });
  });

  it('are absent when nobody gives them', async () => {
    expect(await told(init({ backend: 'cuda13', env }))).toEqual({ options: {}, token: null, sms: 0 });
  });
});
