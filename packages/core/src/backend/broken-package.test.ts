// SPDX-License-Identifier: Apache-2.0
// A broken GPU package is an error with its cause and a way out, never a reason to fall back.

import { describe, expect, it } from 'vitest';
import { context, type Fake, refusal, throwing } from './fake-packages.test-util.js';

describe('a broken backend is an error with its cause, never a fall-back', () => {
  it.each([
    [
      "/lib/libc.so.6: version `GLIBC_2.38' not found (required by nccl_ext.node)",
      'It needs glibc 2.38, and this system has 2.36.',
    ],
    ['Error loading shared library ld-linux-x86-64.so.2: No such file or directory', 'This looks like musl'],
    ["libstdc++.so.6: version `GLIBCXX_3.4.30' not found", 'install or update libstdc++6'],
    [
      'libnuma.so.1: cannot open shared object file: No such file or directory',
      'The library libnuma.so.1 was not found',
    ],
    [
      '/p/nccl_ext.node: cannot open shared object file: No such file',
      'reinstall with `npm i --force @nccl-ext/cuda12`',
    ],
    ['Cannot load native addon because loading addons is disabled.', 'remove that option'],
    ['something else', 'npx nccl-ext doctor'],
  ])('load() throws: %s', async (message, advice) => {
    for (const choice of ['auto', 'cuda', 'cuda12'] as const) {
      const error = await refusal(choice, context({ cuda12: throwing(message) }));
      expect(error).toMatchObject({ code: 'ERR_BACKEND_LOAD', cause: expect.objectContaining({ message }) });
      expect(error.message).toContain(message);
      expect(error.help).toContain(advice);
    }
  });

  it.each([
    ['no JSON', { manifest: '{ "name": ' }, 'JSON'],
    ['no version', { manifest: '{ "name": "@nccl-ext/cuda13" }' }, 'version'],
    ['a floor that is none', { config: { glibc: '2.34' } }, 'Invalid floor'],
    [
      'a hidden package.json',
      { manifest: '{ "version": "0.2.0", "exports": { ".": "./index.js" } }' },
      'not defined by "exports"',
    ],
    [
      'a redirected package.json',
      { manifest: '{ "version": "0.2.0", "exports": { "./package.json": "./gone.json" } }' },
      'gone.json',
    ],
    [
      'no entry',
      { manifest: '{ "version": "0.2.0", "exports": { "./package.json": "./package.json" } }' },
      'No "exports" main defined',
    ],
    ['code that does not parse', { code: 'export function {' }, 'cannot be loaded'],
    ['code that throws', { code: "throw new Error('half written')" }, 'half written'],
    ['no load', { code: 'export const buildInfo = {};' }, 'has no function load'],
    ['no buildInfo', { code: 'export function load() {}' }, 'has no object buildInfo'],
  ] satisfies [string, Fake, string][])('%s', async (_, fake, message) => {
    const error = await refusal('auto', context({ cuda13: fake }));
    expect(error.code).toBe('ERR_BACKEND_LOAD');
    expect(error.message).toContain('@nccl-ext/cuda13');
    expect(error.message).toContain(message);
    expect(error.cause).toBeInstanceOf(Error);
  });
});
