// SPDX-License-Identifier: Apache-2.0
// `pnpm ci:native`: builds both backends, tests native code under the sanitizers, and checks the addons. Needs cmake, ninja, g++,
// python3 with pip and libgtest-dev; a missing tool or toolkit is a failure. Build TypeScript first (npm test does).

import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { run } from './lib.mjs';
import { build } from './native-build.mjs';
import { problemsOf } from './native-check.mjs';
import { test } from './native-test.mjs';

const steps = [
  ['tools', tools],
  ['toolkits and NCCL', () => run('node', ['third_party/fetch.mjs'])],
  ['generated header', () => run('node', ['scripts/native-generate.mjs', '--check'])],
  ['addon for CUDA 13', () => build('cuda13')],
  ['addon for CUDA 12', () => build('cuda12')],
  ['addons load here, and are what may be packed', checkAddons],
  ['packages load their addons', () => run('npx', ['vitest', 'run', 'packages/cuda12', 'packages/cuda13'])],
  ['host tests, and the binding under Node', () => test('fake')],
  ['host tests under ASan and UBSan', () => test('asan')],
  ['host tests under TSan', () => test('tsan')],
];

const needed = new Set(['tools', 'toolkits and NCCL']);
const failed = [];
for (const [name, step] of steps) {
  const begun = performance.now();
  process.stdout.write(`\n== ${name}\n`);
  const ok = step() === 0;
  process.stdout.write(
    `== ${name}: ${ok ? 'ok' : 'FAILED'}, ${((performance.now() - begun) / 1000).toFixed(1)} s\n`,
  );
  if (ok) continue;
  failed.push(name);
  if (needed.has(name)) break;
}
process.stdout.write(
  failed.length === 0 ? '\nAll native checks passed.\n' : `\nFailed: ${failed.join(', ')}\n`,
);
process.exitCode = failed.length === 0 ? 0 : 1;

function tools() {
  const commands = ['cmake', 'ninja', 'g++', 'python3', 'objdump'];
  const missing = commands.filter((command) => spawnSync(command, ['--version']).status !== 0);
  if (!existsSync('/usr/include/gtest/gtest.h')) missing.push('GoogleTest');
  if (missing.length === 0) return 0;
  process.stderr.write(
    `Missing: ${missing.join(', ')}. On Debian: apt-get install cmake ninja-build g++ python3-pip binutils libgtest-dev\n`,
  );
  return 1;
}

function checkAddons() {
  const problems = ['cuda13', 'cuda12'].flatMap(problemsOf);
  for (const problem of problems) process.stderr.write(`${problem}\n`);
  return problems.length;
}
