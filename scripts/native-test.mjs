// SPDX-License-Identifier: Apache-2.0
// Runs the host tests of native code on fake CUDA and NCCL, and kernels on fibers: plain with the binding under Node, then under the sanitizers, and for arm64.
// node scripts/native-test.mjs [fake] [asan] [tsan] [linux-arm64]

import { argv } from 'node:process';
import { fileURLToPath } from 'node:url';
import { root, run } from './lib.mjs';
import { build } from './native-build.mjs';
import { hasQemu } from './native-tools.mjs';

/** Builds and runs one preset's tests; returns the exit code. */
export function test(preset) {
  const built = build(preset);
  if (built !== 0) return built;
  if (preset === 'linux-arm64' && !hasQemu()) {
    process.stdout.write('qemu-aarch64 is not here: the tests for linux-arm64 were compiled and not run\n');
    return 0;
  }
  const tested = run('ctest', ['--preset', preset, '--parallel', '2'], { cwd: `${root}/native` });
  return tested !== 0 || preset !== 'fake' ? tested : testBinding();
}

/** The addon's binding on the fakes; the fake driver must be found before a real one. */
function testBinding() {
  const fakes = `${root}/native/build/fake/fake`;
  return run('node', ['--expose-gc', '--test', 'native/tests/node/'], {
    env: {
      ...process.env,
      LD_LIBRARY_PATH: `${fakes}/cuda-good`,
      NCCL_EXT_NCCL_LIBRARY: `${fakes}/nccl-good/libnccl.so.2`,
    },
  });
}

if (argv[1] === fileURLToPath(import.meta.url)) {
  const presets = argv.length > 2 ? argv.slice(2) : ['fake', 'asan', 'tsan'];
  process.exitCode = presets.map(test).find((status) => status !== 0) ?? 0;
}
