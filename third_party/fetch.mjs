// SPDX-License-Identifier: Apache-2.0
// Brings NVIDIA's parts, which this repository may not contain, into the user's cache folder, each laid out as a toolkit root.

import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { argv, env, execPath } from 'node:process';
import { download } from './download.mjs';
import { downloadsFolder, homes, lockFile, pins, stampOf } from './homes.mjs';
import { layouts } from './layout.mjs';

const groups = { nccl: ['nccl-cu13', 'nccl-cu12'], all: Object.keys(pins) };

/** In the names of folders that are being made; `nccl-ext nccl install` has others. */
const unfinished = '.fetch-';

const usage = `third_party/fetch [--print] [--keep-downloads] [component ...]

Components, all unless some are named:
${Object.entries(pins)
  .map(([name, { version, from, use }]) => `  ${name.padEnd(10)} ${version.padEnd(9)} from ${from}: ${use}`)
  .join('\n')}
  nccl       both builds of NCCL

--print           prints where each component is as JSON, and brings nothing
--keep-downloads  keeps the archives after they are laid out

CUDA12_HOME, CUDA13_HOME, NCCL_HOME and CLANG_FORMAT_HOME name installations of your own; nothing is brought for those.
Files go to $XDG_CACHE_HOME/nccl-ext (default ~/.cache/nccl-ext). Running it again does only what is missing.
`;

const flags = argv.slice(2).filter((word) => word.startsWith('-'));
const names = argv.slice(2).filter((word) => !word.startsWith('-'));
const unknown = [
  ...flags.filter((flag) => !['--print', '--keep-downloads', '--help'].includes(flag)),
  ...names.filter((name) => pins[name] === undefined && groups[name] === undefined),
];
if (unknown.length > 0) {
  process.stderr.write(`Not known: ${unknown.join(', ')}\n\n${usage}`);
  process.exitCode = 2;
} else if (flags.includes('--help')) process.stdout.write(usage);
else if (flags.includes('--print')) process.stdout.write(`${JSON.stringify(homes(), undefined, 2)}\n`);
else {
  const asked = names.length === 0 ? groups.all : names.flatMap((name) => groups[name] ?? [name]);
  process.exitCode = bringInTurn([...new Set(asked)], flags.includes('--keep-downloads'));
}

/**
 * One process at a time changes the cache. The kernel gives the lock back when a process ends, however it ends. Where everything is
 * there, and on a system without flock, nothing is locked.
 */
function bringInTurn(components, keepDownloads) {
  const missing = components.some((name) => !homes()[name].present);
  if (!missing || env.NCCL_EXT_FETCH_LOCKED) return bringAll(components, keepDownloads);
  mkdirSync(dirname(lockFile), { recursive: true });
  const { status, error } = spawnSync('flock', [lockFile, execPath, ...argv.slice(1)], {
    stdio: ['ignore', 'inherit', 'inherit'],
    env: { ...env, NCCL_EXT_FETCH_LOCKED: '1' },
  });
  return error === undefined ? (status ?? 1) : bringAll(components, keepDownloads);
}

function bringAll(components, keepDownloads) {
  const failed = [];
  for (const name of components) {
    try {
      bring(name, keepDownloads);
    } catch (error) {
      failed.push(name);
      process.stderr.write(`${name}: ${error.message}\n`);
    }
  }
  return failed.length === 0 ? 0 : 1;
}

function bring(name, keepDownloads) {
  const { path, from, present } = homes()[name];
  if (from !== 'cache') {
    if (!present) throw new Error(`${from} is ${path}, which lacks what is needed`);
    return say(name, `${path} (from ${from})`);
  }
  if (present) return say(name, `${path} (already there)`);
  const files = pins[name].files.map((pin) => download(pin, (text) => say(name, text)));
  mkdirSync(dirname(path), { recursive: true });
  dropUnfinished(path);
  // Made beside its final place and renamed, so that a broken run leaves nothing that looks whole.
  const temporary = mkdtempSync(`${path}${unfinished}`);
  try {
    say(name, 'unpacking');
    layouts[name](files, temporary);
    writeFileSync(join(temporary, '.pin'), stampOf(name));
    rmSync(path, { recursive: true, force: true });
    renameSync(temporary, path);
  } finally {
    rmSync(temporary, { recursive: true, force: true });
  }
  if (!keepDownloads) dropDownloads(name);
  say(name, path);
}

/** What a run that was killed has left. */
function dropUnfinished(path) {
  for (const name of readdirSync(dirname(path))) {
    if (name.startsWith(`${basename(path)}${unfinished}`))
      rmSync(join(dirname(path), name), { recursive: true, force: true });
  }
}

/** Removes the archives of `name` that no component still waits for. */
function dropDownloads(name) {
  const states = homes();
  const wanted = new Set(
    Object.entries(pins).flatMap(([other, { files }]) =>
      states[other].present ? [] : files.map(({ file }) => file),
    ),
  );
  for (const { file } of pins[name].files) {
    if (!wanted.has(file)) rmSync(join(downloadsFolder, file), { force: true });
  }
}

function say(name, text) {
  process.stdout.write(`${name}: ${text}\n`);
}
