// `npm test`: everything that must hold, from a fresh clone, without a compiler. Runs every step and lists what failed.

import { install, run } from './lib.mjs';
import { runSteps } from './steps.mjs';

const steps = [
  ['install', () => install()],
  // Workers and the command import dist, so the build comes before the tests.
  ['build', () => run('npx', ['tsc', '-b'])],
  ['lint and format (Biome)', () => run('npx', ['biome', 'ci', '--error-on-warnings', '.'])],
  ['types of tests', () => run('npx', ['tsc', '-p', 'tsconfig.test.json'])],
  ['dependency rule', () => run('node', ['scripts/check-dependencies.mjs'])],
  ['generated files', () => run('node', ['scripts/generate.mjs', '--check'])],
  ['rules of native sources', () => run('node', ['scripts/check-native-source.mjs'])],
  ['links in documents', () => run('node', ['scripts/check-links.mjs'])],
  ['unused code (knip)', () => run('npx', ['knip'])],
  ['packages (publint, attw, size)', () => run('node', ['scripts/check-packages.mjs'])],
  ['tests (vitest)', () => run('npx', ['vitest', 'run', '--typecheck'])],
];

process.exitCode = runSteps(steps, new Set(['install', 'build']));
