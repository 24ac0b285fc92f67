// SPDX-License-Identifier: Apache-2.0
// Writes gpu-bundle/: what a machine with a GPU, an NVIDIA driver, bash and xz needs to test and measure nccl-ext without a network, Node or
// a recent NCCL: node scripts/gpu-bundle.mjs [cuda12], then there: gpu-bundle/run.sh. Needs a build and third_party/fetch.

import { execFileSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { argv, execPath } from 'node:process';
import { homes, pins } from '../third_party/homes.mjs';
import { slimFatbin } from '../third_party/slim-fatbin.mjs';
import { root } from './lib.mjs';

const maxBytes = 60_000_000;
/** Compute capability of the GPUs it is carried to. */
const architecture = 90;
const backend = argv[2] ?? 'cuda13';
if (!['cuda12', 'cuda13'].includes(backend)) throw new Error(`no backend ${backend}: cuda12 or cuda13`);
const packages = ['core', 'm2n', 'ep', 'conformance', 'cli', backend];
/** Packages of others that ours import, and who imports them. */
const modules = { zod: 'core', citty: 'cli' };
/** Read by tests/node/binding.test.mjs. */
const contract = 'packages/core/src/contract/runtime.ts';
/** Users' kernels, compiled: read by tests/gpu/smoke/common.mjs. */
const smoke = 'native/build/smoke';

const output = join(root, 'gpu-bundle');
const work = mkdtempSync(join(tmpdir(), 'gpu-bundle-'));
try {
  mkdirSync(output, { recursive: true });
  writeTree(join(work, 'tree'));
  execFileSync('tar', ['-cJf', join(output, 'tree.tar.xz'), '-C', join(work, 'tree'), '.']);
  writeBinaries();
  cpSync(join(root, 'native/tests/gpu/run.sh'), join(output, 'run.sh'));
  report();
} finally {
  rmSync(work, { recursive: true, force: true });
}

/** Packages and tests as a plain node_modules tree, without links. */
function writeTree(tree) {
  const keep = (path) => !/(\/node_modules|\/build|\.map|\.tsbuildinfo|\.d\.[cm]?ts)$/.test(path);
  const copy = (from, to) => cpSync(from, join(tree, to), { recursive: true, filter: keep });
  for (const name of packages) {
    const source = join(root, 'packages', name);
    const target = `node_modules/@nccl-ext/${name}`;
    for (const part of ['package.json', 'dist', 'bin', 'schemas', 'prebuilds/linux-x64']) {
      if (existsSync(join(source, part))) copy(join(source, part), `${target}/${part}`);
      else if (part === 'dist' || (name === backend && part.startsWith('prebuilds')))
        throw new Error(
          `packages/${name}/${part} is missing: npm run build, node scripts/native-build.mjs ${backend}`,
        );
    }
  }
  for (const [name, importer] of Object.entries(modules)) {
    const { resolve } = createRequire(join(root, 'packages', importer, 'package.json'));
    copy(realpathSync(folderOf(name, resolve(name))), `node_modules/${name}`);
  }
  copy(join(root, 'native/tests/node'), 'native/tests/node');
  copy(join(root, 'native/tests/gpu'), 'native/tests/gpu');
  copy(join(root, `native/build/${backend}/smoke`), smoke);
  copy(join(root, 'docs/examples/pytorch'), 'docs/examples/pytorch');
  copy(join(root, 'scripts/demo-checkpoint.mjs'), 'scripts/demo-checkpoint.mjs');
  copy(join(root, contract), contract);
}

/** Node and NCCL take a minute or two to compress; those of an earlier bundle are kept while they are the same. */
function writeBinaries() {
  const stamp = join(output, 'binaries.json');
  const wanted = JSON.stringify({ node: process.version, nccl: pins['nccl-cu13'], architecture });
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted) return;
  compress(execPath, 'node', '-6');
  compress(slimNccl(join(work, 'libnccl.so.2')), 'libnccl.so.2', '-3');
  writeFileSync(stamp, wanted);
}

/** The folder of the package `name` that holds `file`. */
function folderOf(name, file) {
  for (let folder = dirname(file); ; folder = dirname(folder)) {
    const manifest = join(folder, 'package.json');
    if (existsSync(manifest) && JSON.parse(readFileSync(manifest, 'utf8')).name === name) return folder;
    if (folder === dirname(folder)) throw new Error(`${file} is not inside ${name}`);
  }
}

function slimNccl(target) {
  const { path, present } = homes()['nccl-cu13'];
  if (!present) throw new Error(`${path} is missing: third_party/fetch nccl-cu13`);
  const library = readFileSync(join(path, 'lib', 'libnccl.so.2'));
  slimFatbin(library, architecture);
  writeFileSync(target, library);
  execFileSync('strip', ['-g', target]);
  return target;
}

function compress(file, name, level) {
  const packed = execFileSync('xz', [level, '-T1', '-c', file], { maxBuffer: maxBytes });
  writeFileSync(join(output, `${name}.xz`), packed);
}

function report() {
  const parts = ['node.xz', 'libnccl.so.2.xz', 'tree.tar.xz', 'run.sh'];
  const sizes = parts.map((name) => statSync(join(output, name)).size);
  const total = sizes.reduce((sum, bytes) => sum + bytes, 0);
  for (const [index, name] of parts.entries())
    process.stdout.write(`${(sizes[index] / 1e6).toFixed(1).padStart(6)} MB  ${name}\n`);
  process.stdout.write(`${(total / 1e6).toFixed(1).padStart(6)} MB  gpu-bundle, for sm_${architecture}\n`);
  if (total > maxBytes)
    throw new Error(`the bundle has ${total} bytes; at most ${maxBytes} are meant to be carried`);
}
