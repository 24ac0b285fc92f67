// SPDX-License-Identifier: Apache-2.0
// Writes native/generated/ from the contract's TypeScript, so that both languages hold the same numbers, and from native/ the headers for
// users' kernels in both CUDA packages. Needs a build (`npx tsc -b`). With --check it only says which files are out of date.

import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { argv } from 'node:process';
import { fileURLToPath } from 'node:url';
import { root } from './lib.mjs';
import { constantOf, recordsHeader } from './native-records.mjs';

/** What a user's kernel includes, kernel.cuh and everything behind it: published as nccl_ext/<name>. */
const kernelHeaders = [
  'generated/records.hpp',
  'runtime/kernel.cuh',
  'runtime/ptx.cuh',
  'runtime/shared/guard.hpp',
  'runtime/shared/qualifiers.hpp',
  'runtime/shared/status.hpp',
  'runtime/shared/sync.hpp',
];

/** Rows of { path, content }, as scripts/generators.mjs takes them. */
export async function nativeContract() {
  const records = await recordsHeader();
  return [
    { path: 'native/generated/contract.hpp', content: await contractHeader() },
    { path: 'native/generated/records.hpp', content: records },
    ...publicHeaders(records),
  ];
}

/** The same files in both packages; their includes of each other lead to where users find them. */
function publicHeaders(records) {
  return ['cuda12', 'cuda13'].flatMap((backend) =>
    kernelHeaders.map((source) => {
      const text = source.startsWith('generated/')
        ? records
        : readFileSync(join(root, 'native', source), 'utf8');
      const content = text.replace(
        /#include "(?:generated|runtime|runtime\/shared)\/([\w.]+)"/g,
        '#include <nccl_ext/$1>',
      );
      return { path: `packages/${backend}/include/nccl_ext/${source.split('/').at(-1)}`, content };
    }),
  );
}

async function contractHeader() {
  const { dtypes, dtypeTraits } = await import('../packages/core/dist/dtype/dtype.js');
  const contract = await import('../packages/core/dist/contract/index.js');
  const lines = [
    '// SPDX-License-Identifier: Apache-2.0',
    '// Generated from packages/core/src by scripts/native-generate.mjs; do not edit.',
    '#pragma once',
    '',
    '#include <cstddef>',
    '#include <cstdint>',
    '',
    '#include "generated/records.hpp"',
    '',
    'namespace nccl_ext {',
    '',
    `inline constexpr int kContractVersion = ${contract.contractVersion};`,
    `inline constexpr int kMaxQueuedOperations = ${contract.maxQueuedOperations};`,
    `inline constexpr int kMoveLoops = ${contract.moveLoops};`,
    '',
    '// core/src/dtype/dtype.ts',
    'enum class DType : std::uint8_t {',
    ...dtypes.map((name, code) => `  ${constantOf(name)} = ${code},`),
    '};',
    `inline constexpr std::size_t kDTypeCount = ${dtypes.length};`,
    '// Bytes of one element, by code.',
    `inline constexpr std::size_t kDTypeBytes[kDTypeCount] = {${dtypes.map((name) => dtypeTraits[name].bytes).join(', ')}};`,
    '',
    '// core/src/contract/m2n.ts: a move copies bytes when its transform is 0, else it converts.',
    'constexpr std::uint16_t castTransform(DType from, DType to) {',
    '  return static_cast<std::uint16_t>(1 + static_cast<int>(from) * 32 + static_cast<int>(to));',
    '}',
    '',
    'static_assert(sizeof(kDTypeBytes) / sizeof(kDTypeBytes[0]) == kDTypeCount);',
    'static_assert(kDTypeCount <= 32, "castTransform packs a dtype code into five bits");',
    ...castChecks(dtypes, contract.castTransform),
    '',
    '}  // namespace nccl_ext',
    '',
  ];
  return lines.join('\n');
}

/** The TypeScript function's own results, so that a change of its formula breaks the native build. */
function castChecks(dtypes, castTransform) {
  const pairs = [
    [0, 0],
    [1, 3],
    [dtypes.length - 1, dtypes.length - 1],
  ];
  return pairs.map(
    ([from, to]) =>
      `static_assert(castTransform(DType::${constantOf(dtypes[from])}, DType::${constantOf(dtypes[to])}) == ${castTransform(from, to)});`,
  );
}

if (argv[1] === fileURLToPath(import.meta.url)) {
  for (const { path, content } of await nativeContract()) {
    const file = join(root, path);
    if (existsSync(file) && readFileSync(file, 'utf8') === content) continue;
    if (argv.includes('--check')) {
      process.stdout.write(`${path} is out of date: run npm run generate\n`);
      process.exitCode = 1;
      continue;
    }
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, content);
  }
}
