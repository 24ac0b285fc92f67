// SPDX-License-Identifier: Apache-2.0
// Writes native/generated/contract.hpp from the contract's TypeScript, so that both languages hold the same numbers.
// Needs a build (`npx tsc -b`). With --check it only says whether the file is out of date.

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { argv } from 'node:process';
import { fileURLToPath } from 'node:url';
import { root } from './lib.mjs';

const outputPath = 'native/generated/contract.hpp';

/** Rows of { path, content }, as scripts/generators.mjs takes them. */
export async function nativeContract() {
  const { errorNumbers } = await import('../packages/core/dist/errors/codes.js');
  const { dtypes, dtypeTraits } = await import('../packages/core/dist/dtype/dtype.js');
  const contract = await import('../packages/core/dist/contract/index.js');
  const codes = Object.entries(errorNumbers);
  const lines = [
    '// SPDX-License-Identifier: Apache-2.0',
    '// Generated from packages/core/src by scripts/native-generate.mjs; do not edit.',
    '#pragma once',
    '',
    '#include <cstddef>',
    '#include <cstdint>',
    '',
    'namespace nccl_ext {',
    '',
    `inline constexpr int kContractVersion = ${contract.contractVersion};`,
    `inline constexpr int kMaxQueuedOperations = ${contract.maxQueuedOperations};`,
    `inline constexpr int kMoveLoops = ${contract.moveLoops};`,
    '',
    '// core/src/errors/codes.ts',
    'enum class ErrorCode : std::int32_t {',
    '  kNone = 0,',
    ...codes.map(([code, value]) => `  ${constantOf(code.replace(/^ERR_/, ''))} = ${value},`),
    '};',
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
  return [{ path: outputPath, content: lines.join('\n') }];
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

/** `OUT_OF_MEMORY` becomes kOutOfMemory, `bf16` kBf16. */
function constantOf(name) {
  const words = name.toLowerCase().split('_');
  return `k${words.map((word) => word[0].toUpperCase() + word.slice(1)).join('')}`;
}

if (argv[1] === fileURLToPath(import.meta.url)) {
  const [{ path, content }] = await nativeContract();
  const file = join(root, path);
  const current = existsSync(file) && readFileSync(file, 'utf8') === content;
  if (argv.includes('--check')) {
    process.stdout.write(
      current ? `${path} is up to date.\n` : `${path} is out of date: run npm run generate\n`,
    );
    process.exitCode = current ? 0 : 1;
  } else writeFileSync(file, content);
}
