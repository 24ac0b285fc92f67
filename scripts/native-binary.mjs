// SPDX-License-Identifier: Apache-2.0
// What objdump says of an addon, and what of it may not be published: too large, too new a system needed, symbols that leave it, libraries
// that users may not have, Node-API functions that Node 20 lacks.

import { spawnSync } from 'node:child_process';
import { statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { root } from './lib.mjs';

export const maxAddonBytes = 40_000_000;
const nodeApi = 9;
/** Newest symbol versions: glibc 2.34 and GCC 11's libstdc++ are those of RHEL 9, the oldest system that has both. */
const floors = { GLIBC: '2.34', GLIBCXX: '3.4.29', CXXABI: '1.3.13', GCC: '7.0.0' };
const allowedExports = ['napi_register_module_v1', 'node_api_module_get_api_version_v1'];
const allowedLibraries = [
  'libstdc++.so.6',
  'libgcc_s.so.1',
  'libc.so.6',
  'libm.so.6',
  'ld-linux-x86-64.so.2',
];

/** @returns {{ bytes: number, symbols: string, headers: string }} size, `objdump -T` and `objdump -p` of `file` */
export function factsOf(file) {
  return { bytes: statSync(file).size, symbols: objdump('-T', file), headers: objdump('-p', file) };
}

/** One line for each thing that no machine may produce. */
export function binaryProblems({ bytes, symbols, headers }) {
  const problems = [];
  if (bytes > maxAddonBytes) problems.push(`has ${bytes} bytes, at most ${maxAddonBytes} are allowed`);
  const table = symbolsIn(symbols);
  for (const { name, defined } of table) {
    if (defined && !allowedExports.includes(name)) problems.push(`exports ${name}`);
    if (!defined && /^(napi|node_api)_/.test(name) && !nodeApiSymbols().has(name))
      problems.push(`calls ${name}, which is not in Node-API ${nodeApi}`);
  }
  for (const name of allowedExports)
    if (!table.some((symbol) => symbol.defined && symbol.name === name))
      problems.push(`does not export ${name}`);
  const libraries = [...headers.matchAll(/NEEDED\s+(\S+)/g)].map((match) => match[1]);
  if (libraries.length === 0) problems.push('links nothing: these are not the headers of an addon');
  for (const library of libraries) if (!allowedLibraries.includes(library)) problems.push(`links ${library}`);
  return problems;
}

/** One line for each version of a system library that is newer than the oldest system's; a newer machine than Debian 12 may cause them. */
export function floorProblems({ symbols, headers }) {
  const references = headers.split('Version References:')[1] ?? '';
  const versions = [...references.matchAll(/0x\S+ 0x\S+ \d+ (\S+)/g)].map((match) => match[1]);
  if (versions.length === 0)
    return ['names no version of a system library: these are not the headers of an addon'];
  const users = symbolsIn(symbols);
  return versions.filter(tooNew).map((version) => {
    const names = users.filter((symbol) => symbol.version === version).map(({ name }) => name);
    return `needs ${version}${names.length === 0 ? '' : ` for ${names.slice(0, 3).join(', ')}`}`;
  });
}

/** A version without a number, such as GLIBC_ABI_DT_RELR or GLIBC_PRIVATE, is never in the floor. */
function tooNew(version) {
  const [, library, number] = /^([A-Z]+)_([\d.]+)$/.exec(version) ?? [];
  const floor = floors[library];
  return floor === undefined || number.localeCompare(floor, 'en', { numeric: true }) > 0;
}

/** Rows of `objdump -T`: address, flags, section, size, version (in brackets when another file defines it), name. */
function symbolsIn(text) {
  return text.split('\n').flatMap((line) => {
    const row = /^[0-9a-f]{8,} (.{7}) (\S+)\s+[0-9a-f]{8,}\s+(.*)$/.exec(line);
    if (row === null) return [];
    const [version, name] = row[3].trim().split(/\s+/).slice(-2);
    return [{ name, defined: row[2] !== '*UND*', version: version.replace(/[()]/g, '') }];
  });
}

let cached;
/** Every function that Node-API 9 has, from the headers that the addon is compiled with. */
function nodeApiSymbols() {
  if (cached !== undefined) return cached;
  const require = createRequire(join(root, 'packages/cuda13/package.json'));
  const { symbols } = require('node-api-headers');
  const known = Object.entries(symbols).filter(([version]) => Number(version.slice(1)) <= nodeApi);
  cached = new Set(known.flatMap(([, lists]) => Object.values(lists).flat()));
  return cached;
}

function objdump(option, file) {
  const { status, stdout, stderr, error } = spawnSync('objdump', [option, file], {
    encoding: 'utf8',
    maxBuffer: 1 << 26,
  });
  if (status !== 0) throw new Error(`objdump ${option} failed: ${error?.message ?? stderr}`);
  return stdout;
}
