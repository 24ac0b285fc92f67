// Every relative link in a Markdown document leads to a file (and heading) that exists.

import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { root } from './lib.mjs';

const listed = spawnSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', '*.md'], {
  cwd: root,
  encoding: 'utf8',
});
const documents = listed.stdout.split('\n').filter((path) => path !== '' && existsSync(join(root, path)));

const problems = [];
let links = 0;
for (const document of documents) {
  const file = join(root, document);
  const text = withoutCode(readFileSync(file, 'utf8'));
  for (const [, target] of text.matchAll(/\]\(([^)\s]+)\)/g)) {
    if (/^[a-z]+:/.test(target)) continue;
    links += 1;
    const [path, heading] = target.split('#');
    const destination = path === '' ? file : resolve(dirname(file), path);
    if (!existsSync(destination)) {
      problems.push(`${document}: ${target} does not exist`);
    } else if (heading && statSync(destination).isFile() && !headingsOf(destination).has(heading)) {
      problems.push(`${document}: ${relative(root, destination)} has no heading #${heading}`);
    }
  }
}

for (const problem of problems) process.stderr.write(`${problem}\n`);
if (problems.length === 0)
  process.stdout.write(`${links} links in ${documents.length} documents lead somewhere.\n`);
process.exitCode = problems.length === 0 ? 0 : 1;

function withoutCode(text) {
  return text.replace(/```[\s\S]*?```/g, '').replace(/`[^`\n]*`/g, '');
}

function headingsOf(file) {
  const headings = withoutFences(readFileSync(file, 'utf8')).matchAll(/^#+\s+(.+)$/gm);
  return new Set([...headings].map(([, title]) => slug(title)));
}

function withoutFences(text) {
  return text.replace(/```[\s\S]*?```/g, '');
}

function slug(title) {
  return title
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s-]/gu, '')
    .trim()
    .replace(/\s/g, '-');
}
