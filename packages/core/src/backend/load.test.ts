// SPDX-License-Identifier: Apache-2.0
// Every outcome of the loader, with fake packages in a temporary node_modules and a machine that says what the case needs.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { NcclExtError } from '../errors/nccl-ext-error.js';
import type { BackendChoice } from '../options/option-table.js';
import { version as coreVersion } from '../version.js';
import type { CudaName } from './cuda-package.js';
import { describeBackends } from './describe-backends.js';
import { loadBackend } from './load.js';
import { type LoaderContext, processContext } from './loader-context.js';
import { probeBackend } from './probe-backend.js';

interface Fake {
  readonly version?: string;
  readonly config?: unknown;
  /** Text of package.json, instead of a sound one. */
  readonly manifest?: string;
  /** Text of index.js. */
  readonly code?: string;
}

const working = `export const buildInfo = { version: '0.2.0', cudaMajor: 13 };
export function load() { return { info: { name: 'fake' } }; }`;

const root = mkdtempSync(join(tmpdir(), 'nccl-ext-loader-'));
afterAll(() => rmSync(root, { recursive: true }));
let projects = 0;

/** A project with these packages installed; each has its own directory because Node caches what it resolved. */
function project(packages: { readonly [N in CudaName]?: Fake }): string {
  projects += 1;
  const base = join(root, `project-${projects}`);
  mkdirSync(base);
  for (const [name, fake] of Object.entries(packages)) {
    const directory = join(base, 'node_modules', '@nccl-ext', name);
    mkdirSync(directory, { recursive: true });
    const manifest = {
      name: `@nccl-ext/${name}`,
      version: fake.version ?? '0.2.0',
      type: 'module',
      config: fake.config,
      exports: { '.': './index.js', './package.json': './package.json' },
    };
    writeFileSync(join(directory, 'package.json'), fake.manifest ?? JSON.stringify(manifest));
    writeFileSync(join(directory, 'index.js'), fake.code ?? working);
  }
  return join(base, 'package.json');
}

function context(
  packages: Parameters<typeof project>[0],
  machine: { driver?: string; glibc?: string } = { glibc: '2.36' },
): LoaderContext {
  return {
    bases: [project(packages)],
    machine: { driver: () => machine.driver, glibc: () => machine.glibc },
    coreVersion: '0.2.0',
  };
}

async function refusal(choice: BackendChoice, where: LoaderContext): Promise<NcclExtError> {
  try {
    await loadBackend(choice, where);
  } catch (error) {
    if (NcclExtError.is(error)) return error;
    throw error;
  }
  throw new Error('loaded');
}

const throwing = (message: string): Fake => ({
  code: `export const buildInfo = {}; export function load() { throw new Error(${JSON.stringify(message)}); }`,
});

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

describe('where packages are looked for', () => {
  it('the first base that has any decides', async () => {
    const machine = { driver: () => undefined, glibc: () => '2.36' };
    const [empty, twelve, thirteen] = [project({}), project({ cuda12: {} }), project({ cuda13: {} })];
    const where = (...bases: string[]): LoaderContext => ({ bases, machine, coreVersion: '0.2.0' });
    expect(await loadBackend('cuda', where(empty, thirteen))).toMatchObject({ kind: 'cuda13' });
    expect(await loadBackend('cuda', where(twelve, thirteen))).toMatchObject({ kind: 'cuda12' });
  });

  it('by default beside core, then in the working directory', () => {
    const { bases, coreVersion: compared } = processContext();
    expect(bases).toEqual([expect.stringContaining('loader-context'), join(process.cwd(), 'package.json')]);
    expect(compared).toBe(coreVersion);
  });
});

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
