// SPDX-License-Identifier: Apache-2.0
// What a built addon must be before it is packed: it loads without a driver, finds the real NCCL, exports nothing else, and runs on the oldest
// system we name. node scripts/native-check.mjs [--release] [cuda12] [cuda13]; --release asks for every architecture of a release as well.

import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { argv } from 'node:process';
import { fileURLToPath } from 'node:url';
import { homes } from '../third_party/homes.mjs';
import { root } from './lib.mjs';
import { binaryProblems, factsOf, floorProblems } from './native-binary.mjs';

/** Where releases are built: Debian 12. A newer C library gives its own versions to what is linked against it. */
const releaseGlibc = 2.36;

/** Says what is wrong with the addon of `backend`, one line each; none when it is fine. */
export function problemsOf(backend, { release = false } = {}) {
  const folder = join(root, 'packages', backend, 'prebuilds', 'linux-x64');
  const addon = join(folder, 'nccl_ext.node');
  if (!existsSync(addon)) return [`${addon} is missing: node scripts/native-build.mjs ${backend}`];
  const facts = factsOf(addon);
  const build = JSON.parse(readFileSync(join(folder, 'build.json'), 'utf8'));
  say(
    backend,
    `${facts.bytes} bytes, sm ${build.architectures.join(' ')}, PTX ${build.ptx.join(' ') || 'none'}`,
  );
  const problems = [...binaryProblems(facts), ...loadProblems(addon, backend)];
  if (release && build.ptx.length === 0)
    problems.push(`has the architectures of CI only: node scripts/native-build.mjs ${backend}-release`);
  const floor = floorProblems(facts);
  const glibc = Number(process.report.getReport().header.glibcVersionRuntime);
  if (release || glibc <= releaseGlibc) problems.push(...floor);
  else for (const text of floor) say(backend, `built on glibc ${glibc}, not to be published: ${text}`);
  return problems.map((text) => `${backend}: ${text}`);
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
    else say(backend, `NCCL ${nccl.value.version}+cuda${nccl.value.cudaMajor} in ${nccl.value.path}`);
    const missing = 37; // ERR_DRIVER_MISSING
    if (!driver.ok && (ranks.ok || ranks.error.code !== missing))
      problems.push(`without a driver it says ${JSON.stringify(ranks)}`);
    return problems;
  });
}

function say(backend, text) {
  process.stdout.write(`${backend}: ${text}\n`);
}

if (argv[1] === fileURLToPath(import.meta.url)) {
  const release = argv.includes('--release');
  const named = argv.slice(2).filter((word) => word !== '--release');
  const problems = (named.length > 0 ? named : ['cuda13', 'cuda12']).flatMap((backend) =>
    problemsOf(backend, { release }),
  );
  for (const problem of problems) process.stderr.write(`${problem}\n`);
  process.exitCode = problems.length === 0 ? 0 : 1;
}
