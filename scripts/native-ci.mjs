// SPDX-License-Identifier: Apache-2.0
// `npm run ci:native`: builds both backends, tests native code under the sanitizers and for arm64, and checks what would be published.
// Tools that are missing are installed where this is root on Debian; a tool or toolkit that stays missing is a failure.

import { install, run } from './lib.mjs';
import { build } from './native-build.mjs';
import { problemsOf } from './native-check.mjs';
import { format } from './native-format.mjs';
import { test } from './native-test.mjs';
import { bringTools, hasArm64 } from './native-tools.mjs';
import { runSteps, skipped } from './steps.mjs';
import { valuesPtx } from './values-ptx.mjs';

const steps = [
  ['tools', bringTools],
  // A clone where `npm test` never ran has no packages and no build yet.
  ['install', () => install()],
  ['build of TypeScript', () => run('npx', ['tsc', '-b'])],
  ['toolkits, NCCL, clang-format', () => run('node', ['third_party/fetch.mjs'])],
  ['format of native sources', () => format({ check: true })],
  ['generated header', () => run('node', ['scripts/native-generate.mjs', '--check'])],
  ['kernels of made-up values', () => valuesPtx({ check: true })],
  ['addon for CUDA 13', () => build('cuda13')],
  ['addon for CUDA 12', () => build('cuda12')],
  ['addons load here, and are what may be packed', checkAddons],
  ['packages load their addons', () => vitest('packages/cuda12', 'packages/cuda13')],
  ['packages with addons (publint, attw, size)', () => run('node', ['scripts/check-packages.mjs'])],
  ['packages with addons, installed', () => vitest('--config', 'vitest.installed.config.ts')],
  ['host tests, and the binding under Node', () => test('fake')],
  ['host tests under ASan and UBSan', () => test('asan')],
  ['host tests under TSan, and races that it must find', () => test('tsan')],
  ['host tests for linux-arm64', () => (hasArm64() ? test('linux-arm64') : skipped)],
];

process.exitCode = runSteps(
  steps,
  new Set(['tools', 'install', 'build of TypeScript', 'toolkits, NCCL, clang-format']),
);

function vitest(...words) {
  return run('npx', ['vitest', 'run', ...words]);
}

function checkAddons() {
  const problems = ['cuda13', 'cuda12'].flatMap((backend) => problemsOf(backend));
  for (const problem of problems) process.stderr.write(`${problem}\n`);
  return problems.length;
}
