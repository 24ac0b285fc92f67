// SPDX-License-Identifier: Apache-2.0
// Builds native targets by CMake preset: node scripts/native-build.mjs [cuda12] [cuda13] [cuda12-release] [asan] ...
// Without names it builds the addons of both CUDA majors for the architectures of CI. Brings toolkits that are missing.

import { argv, env } from 'node:process';
import { fileURLToPath } from 'node:url';
import { root, run } from './lib.mjs';
import { compilerOf } from './native-tools.mjs';

/** Components of third_party/fetch that a preset needs; headers come from NCCL's CUDA 13 wheel always. */
function componentsOf(preset) {
  return ['nccl-cu13', preset.startsWith('cuda12') ? 'cuda12' : 'cuda13'];
}

/** Builds one preset; returns the exit code. Niced: a build may take the machine, but not from its user. */
export function build(preset) {
  const cwd = `${root}/native`;
  const fetched = run('node', ['third_party/fetch.mjs', ...componentsOf(preset)]);
  if (fetched !== 0) return fetched;
  const configured = run('cmake', ['--preset', preset], { cwd, env: { ...env, ...compilerOf(preset) } });
  return configured !== 0 ? configured : run('nice', ['cmake', '--build', '--preset', preset], { cwd });
}

if (argv[1] === fileURLToPath(import.meta.url)) {
  const presets = argv.length > 2 ? argv.slice(2) : ['cuda13', 'cuda12'];
  process.exitCode = presets.map(build).find((status) => status !== 0) ?? 0;
}
