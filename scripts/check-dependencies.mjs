// The dependency rule of the architecture: who may import whom (docs/architecture.md). Reads the imports of every source file.

import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { root } from './lib.mjs';

/** Package -> packages of ours that its sources may import. */
const allowed = {
  core: [],
  m2n: ['core'],
  ep: ['core'],
  cuda12: ['core/contract'],
  cuda13: ['core/contract'],
  conformance: ['core', 'm2n', 'ep'],
  cli: ['core', 'm2n', 'ep', 'conformance'],
};

/** Inside core the embedded backend sees the contract, and the plain tables that the contract speaks of. */
const embeddedSees = ['contract/', 'errors/codes.ts', 'dtype/dtype.ts', 'version.ts'];

const packagesFolder = join(root, 'packages');
const problems = [];
for (const name of readdirSync(packagesFolder)) {
  const rules = allowed[name];
  if (rules === undefined) {
    problems.push(`packages/${name}: no rule for this package in scripts/check-dependencies.mjs`);
    continue;
  }
  const source = join(packagesFolder, name, 'src');
  for (const file of sourceFiles(source)) {
    for (const specifier of importsOf(readFileSync(file, 'utf8')))
      checkImport(name, rules, source, file, specifier);
  }
}

for (const problem of problems) process.stderr.write(`${problem}\n`);
if (problems.length === 0) process.stdout.write('Every import follows the dependency rule.\n');
process.exitCode = problems.length === 0 ? 0 : 1;

function checkImport(name, rules, source, file, specifier) {
  const at = relative(root, file);
  const isTest = /\.test(-d|-util)?\.ts$/.test(file);
  if (specifier.startsWith('@nccl-ext/')) {
    const target = specifier.slice('@nccl-ext/'.length);
    const known = rules.some((rule) => target === rule || target.startsWith(`${rule}/`));
    if (!known) problems.push(`${at}: ${name} must not import ${specifier}`);
    return;
  }
  if (!specifier.startsWith('.')) return;
  const target = relative(source, resolve(dirname(file), specifier))
    .split(sep)
    .join('/');
  if (target.startsWith('..')) {
    if (!isTest) problems.push(`${at}: ${specifier} leaves the package`);
    return;
  }
  const inEmbedded = relative(source, file).startsWith(`embedded${sep}`) && name === 'core' && !isTest;
  if (!inEmbedded || target.startsWith('embedded/')) return;
  const seen = target.replace(/\.js$/, '.ts');
  if (!embeddedSees.some((allowedPath) => seen.startsWith(allowedPath))) {
    problems.push(`${at}: the embedded backend sees only ${embeddedSees.join(', ')}; not ${target}`);
  }
}

function sourceFiles(folder) {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name));
}

function importsOf(text) {
  // Doc comments hold example programs; their imports are not ours.
  const code = text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/^\s*\/\/.*$/gm, '');
  const pattern = /(?:\bfrom\s*|\bimport\s*\(?\s*)'([^']+)'/g;
  return [...code.matchAll(pattern)].map((match) => match[1]);
}
