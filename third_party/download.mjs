// SPDX-License-Identifier: Apache-2.0
// Brings one pinned archive through the machine's own package client (pip or apt) and checks its hash.

import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { downloadsFolder } from './homes.mjs';

/** The path of the archive; brought only when no file with the pinned hash is there. */
export function download(pin, say) {
  mkdirSync(downloadsFolder, { recursive: true });
  const path = join(downloadsFolder, pin.file);
  if (existsSync(path) && sha256(path) === pin.sha256) return path;
  // A part of a file must not pass for one that pip has brought already.
  rmSync(path, { force: true });
  say(`bringing ${pin.file}`);
  if (pin.file.endsWith('.whl')) withPip(pin);
  else withApt(pin);
  const seen = sha256(path);
  if (seen !== pin.sha256) {
    rmSync(path);
    throw new Error(`${pin.file} has sha256 ${seen}; the pin says ${pin.sha256}. The file was removed.`);
  }
  return path;
}

/** Wheels come with pip's own configuration: index, mirror, proxy, certificates. */
function withPip({ name, version, file }) {
  const platform = file
    .replace(/\.whl$/, '')
    .split('-')
    .at(-1)
    .split('.');
  const platforms = platform.flatMap((tag) => ['--platform', tag]);
  must('python3', [
    ...[
      '-m',
      'pip',
      'download',
      '--quiet',
      '--disable-pip-version-check',
      '--no-deps',
      '--only-binary=:all:',
    ],
    ...[...platforms, '--dest', downloadsFolder, `${name}==${version}`],
  ]);
}

/**
 * Debian packages of another release than the machine's: from the Debian mirror that apt uses here, with package lists of
 * their own, so that the system's apt is left as it is. apt checks the archive's signature, we check the hash.
 */
function withApt({ name, version, file }) {
  const folder = join(downloadsFolder, 'apt');
  mkdirSync(join(folder, 'lists', 'partial'), { recursive: true });
  const sources = join(folder, 'sources.list');
  const keyring = '/usr/share/keyrings/debian-archive-keyring.gpg';
  writeFileSync(sources, `deb [signed-by=${keyring}] ${debianMirror()} trixie non-free\n`);
  const settings = {
    'Dir::Etc::sourcelist': sources,
    'Dir::Etc::sourceparts': '/dev/null',
    'Dir::State::lists': join(folder, 'lists'),
    'Dir::Cache': folder,
    // Files are fetched as the user that runs this; apt's own user may not see the folder.
    'APT::Sandbox::User': 'root',
  };
  const options = ['-qq', ...Object.entries(settings).flatMap(([key, value]) => ['-o', `${key}=${value}`])];
  must('apt-get', [...options, 'update'], { cwd: folder });
  must('apt-get', [...options, 'download', `${name}=${version}`], { cwd: folder });
  renameSync(join(folder, file), join(downloadsFolder, file));
}

function debianMirror() {
  const help = 'Set CUDA12_HOME to a CUDA 12.4 or newer toolkit.';
  const { status, stdout } = spawnSync('apt-get', ['update', '--print-uris'], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`apt-get cannot be used here. ${help}`);
  const found = /^'(\S+\/debian)\/dists\/[^/]+\/InRelease'/m.exec(stdout);
  if (found === null) throw new Error(`apt on this machine knows no Debian mirror. ${help}`);
  return found[1];
}

function must(command, args, options = {}) {
  const { status, error } = spawnSync(command, args, { stdio: ['ignore', 'inherit', 'inherit'], ...options });
  if (error !== undefined) throw new Error(`${command} cannot be run: ${error.message}`);
  if (status !== 0) throw new Error(`${command} ${args.at(-1)} failed with exit code ${status}`);
}

function sha256(path) {
  const hash = createHash('sha256');
  const chunk = Buffer.alloc(1 << 20);
  const file = openSync(path, 'r');
  try {
    for (let bytes = readSync(file, chunk); bytes > 0; bytes = readSync(file, chunk)) {
      hash.update(chunk.subarray(0, bytes));
    }
  } finally {
    closeSync(file);
  }
  return hash.digest('hex');
}
