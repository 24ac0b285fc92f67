// What the repository's scripts share: the root folder, running a step, and bringing pnpm without installing it.

import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = join(dirname(fileURLToPath(import.meta.url)), '..');

const { packageManager } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

/** Runs a command in the repository root with this terminal; returns its exit code. */
export function run(command, args, options = {}) {
  const { status, error } = spawnSync(command, args, { cwd: root, stdio: 'inherit', ...options });
  if (error !== undefined) throw error;
  return status ?? 1;
}

/** Runs the pinned pnpm through npx; no global install, no corepack. */
export function pnpm(args, options) {
  return run('npx', ['--yes', packageManager, ...args], options);
}

/** Installs exactly what the lock file says. */
export function install() {
  return pnpm([
    'install',
    '--frozen-lockfile',
    '--prefer-offline',
    '--reporter=append-only',
    '--loglevel=warn',
  ]);
}
