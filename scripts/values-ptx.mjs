// SPDX-License-Identifier: Apache-2.0
// Compiles native/values to PTX and writes it as a TypeScript module of m2n: node scripts/values-ptx.mjs; with --check it only compares.
// By nvcc of CUDA 12; brings the toolkit if it is missing. The code needs nothing newer than the PTX of CUDA 12.0, so that is what it says it
// is, and ptxas has to agree: a driver refuses PTX that says it is newer than itself.

import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { argv } from 'node:process';
import { fileURLToPath } from 'node:url';
import { homes } from '../third_party/homes.mjs';
import { root, run } from './lib.mjs';
import { compilerOf } from './native-tools.mjs';

const output = 'packages/m2n/src/refit/device-values/generated/values-ptx.ts';
/** The oldest GPUs that the CUDA packages support. */
const architecture = 'compute_80';
/** Of CUDA 12.0, the oldest that the cuda12 package supports. */
const ptxVersion = '8.0';
/** As for the addon (native/cmake/addon.cmake): results equal the embedded backend's. */
const exact = ['-fmad=false', '-ftz=false', '-prec-div=true', '-prec-sqrt=true'];

/** Writes or compares the module; returns the exit code. */
export function valuesPtx({ check }) {
  if (run('node', ['third_party/fetch.mjs', 'cuda12']) !== 0) return 1;
  const content = moduleOf(compile());
  const file = join(root, output);
  if (existsSync(file) && readFileSync(file, 'utf8') === content) return 0;
  if (check) {
    process.stderr.write(`${output} is out of date: run node scripts/values-ptx.mjs\n`);
    return 1;
  }
  writeFileSync(file, content);
  return 0;
}

function compile() {
  const { path } = homes().cuda12;
  const folder = mkdtempSync(join(tmpdir(), 'values-ptx-'));
  try {
    const ptx = join(folder, 'values.ptx');
    const { CXX = 'g++' } = compilerOf('cuda12');
    const includes = ['-I', 'native', '-isystem', `${path}/include/cccl`];
    const options = ['-ptx', `-arch=${architecture}`, '-std=c++17', '-Werror=all-warnings', ...exact];
    execFileSync(
      `${path}/bin/nvcc`,
      ['-ccbin', CXX, ...options, ...includes, '-o', ptx, 'native/values/values.cu'],
      { cwd: root, stdio: 'inherit' },
    );
    const text = readFileSync(ptx, 'utf8').replace(/^\.version .*$/m, `.version ${ptxVersion}`);
    writeFileSync(ptx, text);
    execFileSync(`${path}/bin/ptxas`, ['-arch=sm_80', '-o', '/dev/null', ptx], { stdio: 'inherit' });
    return text;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Comments of the compiler say what it was, which is no part of the code. */
function moduleOf(ptx) {
  const code = ptx
    .split('\n')
    .filter((line) => line.trim() !== '' && !line.startsWith('//'))
    .join('\n');
  return [
    '// SPDX-License-Identifier: Apache-2.0',
    '// Generated from native/values by scripts/values-ptx.mjs; do not edit.',
    '',
    '/** The kernels `write_values` and `compare_values`, for sm_80 and later. */',
    `export const valuesPtx: string = \`${code.replace(/[\\`$]/g, '\\$&')}\n\`;`,
    '',
  ].join('\n');
}

if (argv[1] === fileURLToPath(import.meta.url))
  process.exitCode = valuesPtx({ check: argv.includes('--check') });
