// SPDX-License-Identifier: Apache-2.0
// What native builds need of the system: said by name when it is missing, installed with apt when this is root on Debian.

import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { env, geteuid } from 'node:process';
import { run } from './lib.mjs';

/** GCC of Debian 13 is too new for nvcc 12.4, which takes 13 at most. */
const newestForCuda12 = 13;

const needed = [
  { name: 'cmake', debian: 'cmake', present: () => answers('cmake') },
  { name: 'ninja', debian: 'ninja-build', present: () => answers('ninja') },
  { name: 'g++', debian: 'g++', present: () => answers('g++') },
  {
    name: 'g++ 13 or older',
    debian: `g++-${newestForCuda12}`,
    present: () => compilerForCuda12() !== undefined,
  },
  { name: 'objdump', debian: 'binutils', present: () => answers('objdump') },
  { name: 'pip', debian: 'python3-pip', present: () => answers('python3', '-m', 'pip') },
  { name: 'GoogleTest', debian: 'libgtest-dev', present: () => existsSync('/usr/include/gtest/gtest.h') },
];
/** Steps that lack these are skipped by name. */
const optional = [
  { name: 'g++ for arm64', debian: 'g++-aarch64-linux-gnu', present: hasArm64 },
  { name: 'qemu for arm64', debian: 'qemu-user', present: hasQemu },
];

/** Installs what is missing if it can; the exit code, with the reason on stderr. */
export function bringTools() {
  if (missing([...needed, ...optional]).length > 0 && geteuid?.() === 0 && answers('apt-get')) install();
  for (const { name } of missing(optional))
    process.stdout.write(`${name}: not here, so its steps are skipped\n`);
  const still = missing(needed);
  if (still.length === 0) return 0;
  const packages = still.map(({ debian }) => debian).join(' ');
  process.stderr.write(
    `Missing: ${still.map(({ name }) => name).join(', ')}. On Debian, as root: apt-get update && apt-get install ${packages}\n`,
  );
  return 1;
}

/** The cross compiler for linux-arm64. */
export function hasArm64() {
  return answers('aarch64-linux-gnu-g++');
}

/** Runs programs for linux-arm64 here. */
export function hasQemu() {
  return answers('qemu-aarch64');
}

/** Variables that make CMake take another compiler than g++ for `preset`; none where g++ fits. */
export function compilerOf(preset) {
  const compiler = preset.startsWith('cuda12') && env.CXX === undefined ? compilerForCuda12() : undefined;
  return compiler === undefined || compiler === 'g++' ? {} : { CXX: compiler, CUDAHOSTCXX: compiler };
}

function compilerForCuda12() {
  const { status, stdout } = spawnSync('g++', ['-dumpversion'], { encoding: 'utf8' });
  if (status === 0 && Number.parseInt(stdout, 10) <= newestForCuda12) return 'g++';
  return ['g++-13', 'g++-12'].find((name) => answers(name));
}

/** Optional packages in a run of their own: a system may lack them. */
function install() {
  const apt = (...args) =>
    run('apt-get', ['-qq', '-o', 'DPkg::Lock::Timeout=300', '-o', 'Acquire::Retries=3', ...args], {
      stdio: ['ignore', 'inherit', 'inherit'],
      env: { ...env, DEBIAN_FRONTEND: 'noninteractive' },
    });
  if (apt('update') !== 0)
    process.stderr.write('apt-get update failed; trying with the lists that are here\n');
  for (const group of [needed, optional]) {
    const packages = missing(group).map(({ debian }) => debian);
    if (packages.length > 0) apt('install', '--yes', '--no-install-recommends', ...packages);
  }
}

function missing(tools) {
  return tools.filter(({ present }) => !present());
}

function answers(command, ...args) {
  return spawnSync(command, [...args, '--version']).status === 0;
}
