// SPDX-License-Identifier: Apache-2.0
// Formats native sources with the pinned clang-format (native/.clang-format): node scripts/native-format.mjs [--check]

import { join } from 'node:path';
import { argv } from 'node:process';
import { fileURLToPath } from 'node:url';
import { homes } from '../third_party/homes.mjs';
import { root, run } from './lib.mjs';
import { nativeSources } from './native-sources.mjs';

/** Writes the files, or only says where they differ; the exit code. */
export function format({ check }) {
  const fetched = run('node', ['third_party/fetch.mjs', 'clang-format']);
  if (fetched !== 0) return fetched;
  const tool = join(homes()['clang-format'].path, 'bin/clang-format');
  const status = run(tool, [...(check ? ['--dry-run', '-Werror'] : ['-i']), ...nativeSources()], {
    cwd: join(root, 'native'),
  });
  if (status !== 0 && check) process.stderr.write('Run node scripts/native-format.mjs\n');
  return status;
}

if (argv[1] === fileURLToPath(import.meta.url))
  process.exitCode = format({ check: argv.includes('--check') });
