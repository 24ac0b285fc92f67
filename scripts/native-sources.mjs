// SPDX-License-Identifier: Apache-2.0
// The C++ and CUDA sources of this repository, written by hand, as git knows them; paths from native/ on.

import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './lib.mjs';

export function nativeSources() {
  const folder = join(root, 'native');
  const patterns = ['*.cc', '*.hpp', '*.cu', '*.cuh', '*.inc'];
  const { status, stdout } = spawnSync('git', ['ls-files', '-co', '--exclude-standard', ...patterns], {
    cwd: folder,
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error('git ls-files failed');
  const paths = stdout.split('\n').filter((path) => path !== '' && existsSync(join(folder, path)));
  return paths.filter((path) => !path.startsWith('generated/')).sort();
}
