// The committed files that are made from sources: each generator returns { path, content } rows.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './lib.mjs';

export const generators = [coreVersion, optionsTable, topologySchema, webAssembly];

/** The version constant follows package.json, which changesets edits. */
async function coreVersion() {
  const path = 'packages/core/src/version.ts';
  const { version } = JSON.parse(readFileSync(join(root, 'packages/core/package.json'), 'utf8'));
  const content = readFileSync(join(root, path), 'utf8').replace(
    /(version: string = ')[^']*/,
    `$1${version}`,
  );
  return [{ path, content }];
}

async function optionsTable() {
  const { optionsMarkdown } = await import('../packages/core/dist/options/options-markdown.js');
  return [{ path: 'docs/options.md', content: optionsMarkdown() }];
}

async function topologySchema() {
  const { topologyJsonSchema } = await import('../packages/core/dist/topology/topology-schema.js');
  return [{ path: 'packages/core/schemas/topology.schema.json', content: topologyJsonSchema() }];
}

async function webAssembly() {
  const { generateWasm } = await import('./generate-wasm.mjs');
  return generateWasm();
}
