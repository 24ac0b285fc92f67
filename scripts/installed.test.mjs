// SPDX-License-Identifier: Apache-2.0
// What a user gets: the packed tarballs, installed by npm and by pnpm without a registry, with no, one and both GPU backends. Tests of the
// addon are skipped by name when it was not built; `npm run ci:native` runs this when it was. Not part of `npm test`.

import { spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { cleanEnvironment, installProject, packAll } from './install-project.mjs';
import { root } from './lib.mjs';

const publishable = readdirSync(join(root, 'packages')).filter((name) => {
  const manifest = join(root, 'packages', name, 'package.json');
  return existsSync(manifest) && JSON.parse(readFileSync(manifest, 'utf8')).private !== true;
});
const backends = ['cuda12', 'cuda13'];
const apis = publishable.filter((name) => !backends.includes(name));
const built = (backend) => existsSync(join(root, `packages/${backend}/prebuilds/linux-x64/nccl_ext.node`));
const driver = existsSync('/proc/driver/nvidia/version');
// The packages say os, cpu and libc; elsewhere package managers refuse them.
const fits = `${process.platform}-${process.arch}` === 'linux-x64';

/** Makes two worlds and prints, as JSON, where they ran or why not. */
const program = `
import { localWorld, NcclExtError, version } from '@nccl-ext/core';
${apis
  .filter((name) => name !== 'cli')
  .map((name) => `import '@nccl-ext/${name}';`)
  .join('\n')}
const outcomes = [];
for (let index = 0; index < 2; index++) {
  try {
    const world = await localWorld({ ranks: 2 });
    outcomes.push({ backend: world.backend.name });
    await world.dispose();
  } catch (error) {
    if (!NcclExtError.is(error)) throw error;
    outcomes.push({ code: error.code, message: error.message, help: error.help });
  }
}
process.stdout.write(JSON.stringify({ version, outcomes }));`;

// Other tests may keep every core busy meanwhile.
vi.setConfig({ testTimeout: 120_000 });

const folder = mkdtempSync(join(tmpdir(), 'nccl-ext-installed-'));
const packs = join(folder, 'packs');
let tarballs;
beforeAll(() => {
  mkdirSync(packs);
  tarballs = packAll(packs);
}, 300_000);
afterAll(() => rmSync(folder, { recursive: true, force: true }), 120_000);

function runIn(project, args, env = {}) {
  const options = {
    cwd: project,
    env: { ...cleanEnvironment(), ...env },
    encoding: 'utf8',
    timeout: 110_000,
  };
  const { status, stdout, stderr } = spawnSync(process.execPath, args, options);
  return { status, stdout, stderr };
}

/** What the program printed, and how often it warned that no GPU backend is there. */
function outcomesIn(project, env) {
  const { stdout, stderr } = runIn(project, ['program.mjs'], env);
  const warnings = stderr.split('[NCCL_EXT_EMBEDDED_BACKEND]').length - 1;
  if (!stdout.startsWith('{')) throw new Error(stderr);
  return { ...JSON.parse(stdout), warnings };
}

describe.each(['npm', 'pnpm'])('installed by %s', (manager) => {
  function install(name, gpu, settings) {
    const packages = [...apis, ...gpu].map((one) => `@nccl-ext/${one}`);
    const made = installProject({
      folder,
      name: `${manager}-${name}`,
      manager,
      packages,
      tarballs,
      settings,
    });
    writeFileSync(join(made.project, 'program.mjs'), program);
    return made;
  }

  describe('without a GPU backend', () => {
    let project;
    let said;
    beforeAll(() => {
      ({ project, said } = install('none', []));
    }, 300_000);

    it('brings no backend, runs no script and warns of nothing', () => {
      expect(readdirSync(join(project, 'node_modules/@nccl-ext')).sort()).toEqual([...apis].sort());
      const inside = readdirSync(join(project, 'node_modules'), { recursive: true });
      expect(inside.filter((path) => /@nccl-ext[/+]cuda1[23]/.test(path))).toEqual([]);
      expect(said).not.toMatch(/warn|script/i);
    });

    it('runs on the embedded backend, with one warning per process', () => {
      const embedded = { backend: 'embedded' };
      expect(outcomesIn(project)).toMatchObject({ outcomes: [embedded, embedded], warnings: 1 });
      expect(outcomesIn(project, { NCCL_EXT_BACKEND: 'embedded' }).warnings).toBe(0);
    });

    it('has a command that helps, examines the machine and tests itself', () => {
      const command = join('node_modules/@nccl-ext/cli/bin/nccl-ext.mjs');
      expect(existsSync(join(project, 'node_modules/.bin/nccl-ext'))).toBe(true);
      const help = spawnSync('npx', ['nccl-ext', '--help'], {
        cwd: project,
        env: cleanEnvironment(),
        encoding: 'utf8',
      });
      expect(help).toMatchObject({ status: 0, stdout: expect.stringContaining('doctor') });
      expect(runIn(project, [command, 'doctor'])).toMatchObject({
        status: 0,
        stdout: expect.stringContaining('embedded'),
      });
      const filter = ['--filter', 'one rank'];
      expect(runIn(project, [command, 'selftest', ...filter])).toMatchObject({ status: 0 });
    });

    // pnpm's layout is the stricter one: a package sees only what it declares.
    it.runIf(manager === 'pnpm').each(['node16', 'bundler'])('has types that resolve as %s', (resolution) => {
      expect(compile(project, resolution)).toEqual({ status: 0, stdout: '' });
    });
  });

  describe.runIf(fits).each(backends)('with %s', (backend) => {
    let project;
    beforeAll(() => {
      ({ project } = install(backend, [backend], { autoInstallPeers: false }));
    }, 300_000);

    it('is found from core', () => {
      const { stdout } = runIn(project, ['node_modules/@nccl-ext/cli/bin/nccl-ext.mjs', 'doctor', '--json']);
      expect(stdout).toContain(`@nccl-ext/${backend}`);
    });

    it.skipIf(built(backend))('says that the addon is missing, and does not fall back', () => {
      const { outcomes, warnings } = outcomesIn(project);
      expect(outcomes[0]).toMatchObject({
        code: 'ERR_BACKEND_LOAD',
        message: expect.stringContaining('nccl_ext.node'),
      });
      expect(warnings).toBe(0);
    });

    it.skipIf(!built(backend) || driver)('says that there is no driver, and does not fall back', () => {
      const { outcomes, warnings } = outcomesIn(project);
      expect(outcomes.map(({ code }) => code)).toEqual(['ERR_DRIVER_MISSING', 'ERR_DRIVER_MISSING']);
      expect(warnings).toBe(0);
    });

    it.skipIf(!built(backend) || driver)('loads its addon for doctor', () => {
      const { stdout } = runIn(project, ['node_modules/@nccl-ext/cli/bin/nccl-ext.mjs', 'doctor']);
      expect(stdout).toMatch(new RegExp(`@nccl-ext/${backend}\\s+0\\.`));
    });
  });

  describe.runIf(fits)('with both GPU backends', () => {
    let project;
    beforeAll(() => {
      ({ project } = install('both', backends));
    }, 300_000);

    it('is a conflict that says what to uninstall', () => {
      const [{ code, message, help }] = outcomesIn(project).outcomes;
      expect(code).toBe('ERR_BACKEND_CONFLICT');
      expect(message).toMatch(/^Both @nccl-ext\/cuda12@\S+ and @nccl-ext\/cuda13@\S+ are installed\./);
      expect(help).toMatch(/npm uninstall @nccl-ext\/cuda1[23]/);
      expect(help).toContain('NCCL_EXT_BACKEND=cuda12');
    });

    it.each(backends)('NCCL_EXT_BACKEND=%s picks that one', (backend) => {
      const [outcome] = outcomesIn(project, { NCCL_EXT_BACKEND: backend }).outcomes;
      if (driver && built(backend)) expect(outcome).toMatchObject({ backend });
      else if (built(backend)) expect(outcome.code).toBe('ERR_DRIVER_MISSING');
      else
        expect(outcome).toMatchObject({
          code: 'ERR_BACKEND_LOAD',
          message: expect.stringContaining(backend),
        });
    });

    it('the embedded backend can still be asked for', () => {
      const [outcome] = outcomesIn(project, { NCCL_EXT_BACKEND: 'embedded' }).outcomes;
      expect(outcome).toEqual({ backend: 'embedded' });
    });
  });
});

/** Compiles a program that uses a type of every package, declarations of ours included. */
function compile(project, resolution) {
  const types = join(root, 'node_modules/@types');
  const names = apis.filter((name) => name !== 'cli');
  const text = [
    ...names.map((name, index) => `import * as module${index} from '@nccl-ext/${name}';`),
    "import { localWorld, type World } from '@nccl-ext/core';",
    "import { contractVersion } from '@nccl-ext/core/contract';",
    'export const world: Promise<World> = localWorld({ ranks: 2 });',
    '// @ts-expect-error ranks is a number',
    "export const wrong = localWorld({ ranks: 'two' });",
    `export const all = [contractVersion, ${names.map((_, index) => `module${index}`).join(', ')}];`,
  ];
  writeFileSync(join(project, 'use.ts'), text.join('\n'));
  const module = resolution === 'bundler' ? 'esnext' : 'node16';
  const compilerOptions = {
    ...{ module, moduleResolution: resolution, target: 'es2022', lib: ['es2023', 'esnext.disposable'] },
    ...{ strict: true, noEmit: true, typeRoots: [types], types: ['node'] },
  };
  writeFileSync(join(project, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['use.ts'] }));
  const { status, stdout } = runIn(project, [join(root, 'node_modules/typescript/bin/tsc'), '-p', '.']);
  return { status, stdout };
}
