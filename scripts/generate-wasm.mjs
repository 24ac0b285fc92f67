// SPDX-License-Identifier: Apache-2.0
// Assembles the WebAssembly text of the embedded backend into a TypeScript module, so that the package ships no loose files.

import { readFileSync } from 'node:fs';
import wabt from 'wabt';

const folder = new URL('../packages/core/src/embedded/wasm/', import.meta.url);
const features = { simd: true, threads: true, bulk_memory: true };
const modules = ['copy', 'hash', 'cast', 'ep'];

/** The file that `assembleWasm` gives the content of. */
export const wasmOutput = new URL('generated/modules.ts', folder);

/** The text of the generated module: one base64 string per `.wat` file. */
export async function assembleWasm() {
  const assembler = await wabt();
  const lines = modules.map((name) => {
    const file = new URL(`${name}.wat`, folder);
    const module = assembler.parseWat(`${name}.wat`, readFileSync(file, 'utf8'), features);
    try {
      module.validate(features);
      const base64 = Buffer.from(module.toBinary({}).buffer).toString('base64');
      return `/** ${name}.wat */\nexport const ${name}Module: string =\n  '${base64}';\n`;
    } finally {
      module.destroy();
    }
  });
  return [
    '// SPDX-License-Identifier: Apache-2.0',
    '// Generated from the .wat files beside this folder by scripts/generate-wasm.mjs; do not edit.',
    '',
    ...lines,
  ].join('\n');
}
