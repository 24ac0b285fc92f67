// SPDX-License-Identifier: Apache-2.0
// Turns what `nccl-ext bench m2n --save` wrote into Markdown for docs/performance, and one such file into a picture. Needs a build.
//   node scripts/bench-page.mjs threads.json processes.json > tables.md
//   node scripts/bench-page.mjs sweep.json --picture docs/pictures/m2n-sms.svg --title 'M2N on one H200'

import { readFileSync, writeFileSync } from 'node:fs';
import { argv } from 'node:process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { chart } from './bench-page/chart.mjs';
import { tables } from './bench-page/tables.mjs';

if (argv[1] === fileURLToPath(import.meta.url)) {
  const { values, positionals } = parseArgs({
    options: { picture: { type: 'string' }, title: { type: 'string', default: 'M2N' } },
    allowPositionals: true,
  });
  if (positionals.length === 0) throw new Error('name the files that nccl-ext bench m2n --save wrote');
  const results = positionals.map((path) => JSON.parse(readFileSync(path, 'utf8')));
  process.stdout.write(results.map(tables).join('\n'));
  if (values.picture !== undefined) {
    if (results.length !== 1) throw new Error('a picture shows one file');
    writeFileSync(values.picture, chart(results[0], values.title));
  }
}
