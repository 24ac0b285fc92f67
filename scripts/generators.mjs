// The committed files that are made from sources: each generator returns { path, content } rows.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './lib.mjs';
import { nativeContract } from './native-generate.mjs';

export const generators = [
  coreVersion,
  optionsTable,
  topologySchema,
  manifestSchema,
  planSchema,
  webAssembly,
  nativeContract,
  expertPictures,
  expertFields,
];

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

async function manifestSchema() {
  const { manifestJsonSchema } = await import('../packages/m2n/dist/manifest/manifest-schema.js');
  const content = `${JSON.stringify(manifestJsonSchema(), null, 2)}\n`;
  return [{ path: 'packages/m2n/schemas/manifest.schema.json', content }];
}

async function planSchema() {
  const { planJsonSchema } = await import('../packages/m2n/dist/plan/json/plan-schema.js');
  return [{ path: 'packages/m2n/schemas/plan.schema.json', content: planJsonSchema() }];
}

async function webAssembly() {
  const { assembleWasm } = await import('./generate-wasm.mjs');
  return [{ path: 'packages/core/src/embedded/wasm/generated/modules.ts', content: await assembleWasm() }];
}

async function expertPictures() {
  const { epPictures } = await import('./ep-pictures.mjs');
  return epPictures();
}

/** The tables of the reference; the text around them is written by hand. */
async function expertFields() {
  const { withTables } = await import('./ep-fields.mjs');
  const path = 'docs/ep-reference.md';
  return [{ path, content: withTables(readFileSync(join(root, path), 'utf8')) }];
}
