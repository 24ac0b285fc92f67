// SPDX-License-Identifier: Apache-2.0
// What a built addon must be before it is packed: it loads without a driver, finds the real NCCL, exports nothing else, and runs on the oldest system we name.
// node scripts/native-check.mjs [cuda12] [cuda13]

import { spawnSync } from 'node:child_process';
import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { argv } from 'node:process';
import { fileURLToPath } from 'node:url';
import { homes } from '../third_party/homes.mjs';
import { root } from './lib.mjs';

const maxAddonBytes = 40 * 1024 * 1024;
/** Newest symbol versions: glibc 2.34 and GCC 11's libstdc++ are those of RHEL 9, the oldest system that has both. */
const floors = { GLIBC: '2.34', GLIBCXX: '3.4.29', CXXABI: '1.3.13' };
const allowedExports = ['napi_register_module_v1', 'node_api_module_get_api_version_v1'];
const allowedLibraries = [
  'libstdc++.so.6',
  'libgcc_s.so.1',
  'libc.so.6',
  'libm.so.6',
  'ld-linux-x86-64.so.2',
];

/** Says what is wrong with the addon of `backend`, one line each; none when it is fine. */
export function problemsOf(backend) {
  const addon = join(root, 'packages', backend, 'prebuilds', 'linux-x64', 'nccl_ext.node');
  if (!existsSync(addon)) return [`${addon} is missing: node scripts/native-build.mjs ${backend}`];
  return [...binaryProblems(addon), ...loadProblems(addon, backend)].map((text) => `${backend}: ${text}`);
}

function binaryProblems(addon) {
  const problems = [];
  const bytes = statSync(addon).size;
  if (bytes > maxAddonBytes)
    problems.push(`the addon has ${bytes} bytes, at most ${maxAddonBytes} are allowed`);
  const symbols = output('objdump', ['-T', addon]).split('\n');
  for (const line of symbols) {
    const version = /\((GLIBC|GLIBCXX|CXXABI)_([\d.]+)\)/.exec(line);
    if (version !== null && newer(version[2], floors[version[1]]))
      problems.push(`needs ${version[1]}_${version[2]}: ${line.trim()}`);
    const name = line.trim().split(/\s+/).at(-1);
    if (/\s(DF|DO)\s/.test(line) && !line.includes('*UND*') && !allowedExports.includes(name))
      problems.push(`exports ${name}`);
  }
  const needed = [...output('objdump', ['-p', addon]).matchAll(/NEEDED\s+(\S+)/g)].map((match) => match[1]);
  for (const library of needed) if (!allowedLibraries.includes(library)) problems.push(`links ${library}`);
  return problems;
}

/** Loads it in a process of its own, once per build of NCCL. */
function loadProblems(addon, backend) {
  const program = `
    const { createBackend, probe } = require(${JSON.stringify(addon)});
    const backend = createBackend('0.0.0');
    backend.runtime.createLocalRanks({ ranks: 2, timeoutMs: 1000, workers: 0 }).then(async (ranks) => {
      await backend.dispose();
      process.stdout.write(JSON.stringify({ ranks, name: backend.info.name, ...probe() }));
    });`;
  return Object.entries(homes()).flatMap(([component, { path }]) => {
    if (!component.startsWith('nccl')) return [];
    const library = join(path, 'lib', 'libnccl.so.2');
    const child = spawnSync('node', ['-e', program], {
      encoding: 'utf8',
      env: { ...process.env, NCCL_EXT_NCCL_LIBRARY: library },
    });
    if (child.status !== 0) return [`does not load: ${child.stderr}`];
    const { ranks, name, driver, nccl } = JSON.parse(child.stdout);
    const problems = [];
    if (name !== backend) problems.push(`calls itself ${name}`);
    if (!nccl.ok) problems.push(`${component}: ${nccl.error.detail}`);
    else
      process.stdout.write(
        `${backend}: NCCL ${nccl.value.version}+cuda${nccl.value.cudaMajor} in ${nccl.value.path}\n`,
      );
    const missing = 37; // ERR_DRIVER_MISSING
    if (!driver.ok && (ranks.ok || ranks.error.code !== missing))
      problems.push(`without a driver it says ${JSON.stringify(ranks)}`);
    return problems;
  });
}

function newer(version, floor) {
  return version.localeCompare(floor, 'en', { numeric: true }) > 0;
}

function output(command, args) {
  const { status, stdout, stderr, error } = spawnSync(command, args, {
    encoding: 'utf8',
    maxBuffer: 1 << 26,
  });
  if (status !== 0) throw new Error(`${command} failed: ${error?.message ?? stderr}`);
  return stdout;
}

if (argv[1] === fileURLToPath(import.meta.url)) {
  const problems = (argv.length > 2 ? argv.slice(2) : ['cuda13', 'cuda12']).flatMap(problemsOf);
  for (const problem of problems) process.stderr.write(`${problem}\n`);
  process.exitCode = problems.length === 0 ? 0 : 1;
}
