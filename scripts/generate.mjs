// Writes the committed files that are made from sources; with --check it only says which of them are out of date.
// Needs a build (`npx tsc -b`), since the sources of truth are TypeScript.

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { generators } from './generators.mjs';
import { root } from './lib.mjs';

const checkOnly = process.argv.includes('--check');
let stale = 0;
for (const generate of generators) {
  for (const { path, content } of await generate()) {
    const file = join(root, path);
    if (existsSync(file) && readFileSync(file, 'utf8') === content) continue;
    stale += 1;
    if (checkOnly) process.stderr.write(`${path} is out of date: run npm run generate\n`);
    else {
      writeFileSync(file, content);
      process.stdout.write(`wrote ${path}\n`);
    }
  }
}
if (stale === 0) process.stdout.write('Generated files are up to date.\n');
process.exitCode = checkOnly && stale > 0 ? 1 : 0;
