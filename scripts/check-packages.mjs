// What would be published is right: packed tarballs pass publint and attw, stay small, and contain no tests.

import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pnpm, run } from './lib.mjs';

/** Largest tarball in bytes: npm refuses much larger ones, and a user waits for every byte. */
const maxTarballBytes = (name) => (/-cuda1[23]-/.test(name) ? 25 : 1) * 1024 * 1024;

const folder = mkdtempSync(join(tmpdir(), 'nccl-ext-pack-'));
let failures = 0;
try {
  const packed = pnpm(['-r', 'pack', '--pack-destination', folder], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  if (packed !== 0) fail('pnpm pack failed');
  for (const tarball of readdirSync(folder)) checkTarball(join(folder, tarball), tarball);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
process.exitCode = failures === 0 ? 0 : 1;

function checkTarball(file, name) {
  const bytes = statSync(file).size;
  process.stdout.write(`${name}: ${(bytes / 1024).toFixed(0)} KiB\n`);
  if (bytes > maxTarballBytes(name)) fail(`${name} is larger than ${maxTarballBytes(name)} bytes`);
  const { stdout } = spawnSync('tar', ['-tzf', file], { encoding: 'utf8' });
  const unwanted = stdout.split('\n').filter((path) => /\.test\.|\.test-d\.|tsbuildinfo/.test(path));
  if (unwanted.length > 0) fail(`${name} contains ${unwanted.slice(0, 3).join(', ')}`);
  if (run('npx', ['publint', '--strict', file]) !== 0) fail(`${name}: publint`);
  if (
    run('npx', ['attw', '--profile', 'esm-only', '--format', 'ascii', file], {
      stdio: ['ignore', 'pipe', 'inherit'],
    }) !== 0
  ) {
    run('npx', ['attw', '--profile', 'esm-only', '--format', 'ascii', file]);
    fail(`${name}: attw`);
  }
}

function fail(message) {
  failures += 1;
  process.stderr.write(`${message}\n`);
}
