// SPDX-License-Identifier: Apache-2.0
// `npm run release`: builds everything that is published, the addons for all architectures of a release, checks it, and publishes the
// versions that no registry has. With --dry-run all but the publishing. On linux-x64, Debian 12: what is linked decides who can load it.

import { argv } from 'node:process';
import { install, pnpm, run } from './lib.mjs';
import { build } from './native-build.mjs';
import { bringTools } from './native-tools.mjs';
import { runSteps } from './steps.mjs';

const steps = [
  ['tools', bringTools],
  ['install', () => install()],
  ['build', () => run('node', ['scripts/build.mjs'])],
  ['generated files', () => run('node', ['scripts/generate.mjs', '--check'])],
  ['addon for CUDA 13, all architectures', () => build('cuda13-release')],
  ['addon for CUDA 12, all architectures', () => build('cuda12-release')],
  ['both builds of NCCL', () => run('node', ['third_party/fetch.mjs', 'nccl'])],
  ['addons', () => run('node', ['scripts/native-check.mjs', '--release'])],
  ['packages (publint, attw, size)', () => run('node', ['scripts/check-packages.mjs'])],
  ['packages, installed', () => run('npx', ['vitest', 'run', '--config', 'vitest.installed.config.ts'])],
  ...(argv.includes('--dry-run') ? [] : [['publish', () => pnpm(['exec', 'changeset', 'publish'])]]),
];

// Every step is needed: nothing is published after one that failed.
process.exitCode = runSteps(steps, new Set(steps.map(([name]) => name)));
