// `npm test`: everything that must hold, from a fresh clone, without a compiler. Runs every step and lists what failed.

import { install, run } from './lib.mjs';

const steps = [
  ['install', () => install()],
  // Workers and the command import dist, so the build comes before the tests.
  ['build', () => run('npx', ['tsc', '-b'])],
  ['lint and format (Biome)', () => run('npx', ['biome', 'ci', '--error-on-warnings', '.'])],
  ['types of tests', () => run('npx', ['tsc', '-p', 'tsconfig.test.json'])],
  ['dependency rule', () => run('node', ['scripts/check-dependencies.mjs'])],
  ['generated files', () => run('node', ['scripts/generate.mjs', '--check'])],
  ['links in documents', () => run('node', ['scripts/check-links.mjs'])],
  ['unused code (knip)', () => run('npx', ['knip'])],
  ['packages (publint, attw, size)', () => run('node', ['scripts/check-packages.mjs'])],
  ['tests (vitest)', () => run('npx', ['vitest', 'run', '--typecheck'])],
];

const needed = new Set(['install', 'build']);
const failed = [];
const started = performance.now();
for (const [name, step] of steps) {
  const begun = performance.now();
  process.stdout.write(`\n== ${name}\n`);
  const ok = step() === 0;
  process.stdout.write(
    `== ${name}: ${ok ? 'ok' : 'FAILED'}, ${((performance.now() - begun) / 1000).toFixed(1)} s\n`,
  );
  if (!ok) failed.push(name);
  if (!ok && needed.has(name)) break;
}

process.stdout.write(`\n${((performance.now() - started) / 1000).toFixed(0)} s. `);
process.stdout.write(failed.length === 0 ? 'All checks passed.\n' : `Failed: ${failed.join(', ')}\n`);
process.exitCode = failed.length === 0 ? 0 : 1;
