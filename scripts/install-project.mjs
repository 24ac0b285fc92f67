// SPDX-License-Identifier: Apache-2.0
// An empty project with our packages installed as a user would get them: from tarballs, by npm or pnpm, with no package of ours in any
// registry. zod and citty are packed from this clone's node_modules, so that nothing is asked of a network.

import { spawnSync } from 'node:child_process';
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  writeFileSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { root } from './lib.mjs';

/** Packages of others that ours import, and who imports them. */
const modules = { zod: 'core', citty: 'cli' };
/** Nothing listens here: whoever looks a package up fails at once. */
const noRegistry = 'http://127.0.0.1:9/';
const { packageManager } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

/** Packs every publishable package into `folder`; tarballs by package name. */
export function packAll(folder) {
  pnpm(['-r', 'pack', '--pack-destination', folder], root);
  const ours = readdirSync(folder).map((file) => [
    `@nccl-ext/${/^nccl-ext-(.+)-\d+\.\d+\.\d+[^/]*\.tgz$/.exec(file)[1]}`,
    join(folder, file),
  ]);
  const others = Object.entries(modules).map(([name, importer]) => [
    name,
    packModule(name, importer, folder),
  ]);
  return Object.fromEntries([...ours, ...others]);
}

/**
 * Makes the project `folder`/`name` that depends on `packages` and on what they need; returns its folder.
 * `settings` go to pnpm-workspace.yaml.
 */
export function installProject({ folder, name, manager, packages, tarballs, settings = {} }) {
  const project = join(folder, name);
  mkdirSync(project);
  const specOf = (dependency) => `file:${tarballs[dependency]}`;
  const dependencies = Object.fromEntries(packages.map((dependency) => [dependency, specOf(dependency)]));
  // Of the backends only those that are asked for: an override would make the other one known to the package manager.
  const others = Object.keys(tarballs).filter((dependency) => !/cuda1[23]$/.test(dependency));
  const overrides = Object.fromEntries(others.map((dependency) => [dependency, specOf(dependency)]));
  const manifest = { name, version: '1.0.0', private: true, type: 'module', dependencies };
  if (manager === 'npm') manifest.overrides = overrides;
  else {
    const own = { storeDir: join(folder, 'pnpm-store'), fetchRetries: 0 };
    writeFileSync(join(project, 'pnpm-workspace.yaml'), JSON.stringify({ ...own, ...settings, overrides }));
  }
  writeFileSync(join(project, 'package.json'), JSON.stringify(manifest, undefined, 2));
  const said = manager === 'npm' ? npmInstall(project, folder) : pnpmInstall(project);
  return { project, said };
}

function npmInstall(project, folder) {
  const options = ['--no-audit', '--no-fund', '--fetch-retries=0', `--registry=${noRegistry}`];
  return must('npm', ['install', ...options, `--cache=${join(folder, 'npm-cache')}`], project);
}

function pnpmInstall(project) {
  const options = ['--no-frozen-lockfile', '--reporter=append-only', `--registry=${noRegistry}`];
  return pnpm(['install', ...options], project);
}

/** A tarball of a package that lies in this clone's node_modules. */
function packModule(name, importer, folder) {
  const source = realpathSync(join(root, 'packages', importer, 'node_modules', name));
  const work = mkdtempSync(join(folder, '..', `${basename(name)}-`));
  cpSync(source, join(work, 'package'), {
    recursive: true,
    filter: (path) => !path.slice(source.length).includes('node_modules'),
  });
  const tarball = join(folder, '..', `${name}.tgz`);
  must('tar', ['-czf', tarball, '-C', work, 'package'], root);
  return tarball;
}

function pnpm(args, cwd) {
  return must('npx', ['--yes', packageManager, ...args], cwd);
}

function must(command, args, cwd) {
  const { status, stdout, stderr, error } = spawnSync(command, args, {
    cwd,
    env: cleanEnvironment(),
    encoding: 'utf8',
  });
  if (status !== 0)
    throw new Error(`${command} ${args.join(' ')}: ${error?.message ?? `${stdout}${stderr}`}`);
  return `${stdout}${stderr}`;
}

/** This process's environment without what npm tells the scripts it runs, and without what picks a backend. */
export function cleanEnvironment() {
  const ours = /^(npm_|pnpm_|NCCL_|VITEST|NODE_|CI$)/i;
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !ours.test(name)));
}
