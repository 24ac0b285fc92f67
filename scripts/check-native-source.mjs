// SPDX-License-Identifier: Apache-2.0
// Native sources keep the rules that no compiler knows: edges with both ends, and words that stand in one place. Needs no compiler.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './lib.mjs';
import { edgeProblems } from './native-edges.mjs';
import { nativeSources } from './native-sources.mjs';
import { wordProblems } from './native-words.mjs';

const files = nativeSources().map((path) => ({
  path,
  text: readFileSync(join(root, 'native', path), 'utf8'),
}));
const problems = [...edgeProblems(files), ...wordProblems(files)];
for (const problem of problems) process.stderr.write(`native/${problem}\n`);
if (problems.length === 0) process.stdout.write(`${files.length} native sources keep the rules.\n`);
process.exitCode = problems.length === 0 ? 0 : 1;
