// SPDX-License-Identifier: Apache-2.0
// Structs and numbers that kernels and the host share, as C++: native/generated/records.hpp, from packages/core/src.

/** The text of records.hpp. Includes nothing of ours, because users' kernels include it too. */
export async function recordsHeader() {
  const { errorNumbers } = await import('../packages/core/dist/errors/codes.js');
  const contract = await import('../packages/core/dist/contract/index.js');
  const { deviceRecordBytes, kernelGuardBytes } = contract;
  const lines = [
    '// SPDX-License-Identifier: Apache-2.0',
    '// Generated from packages/core/src by scripts/native-generate.mjs; do not edit.',
    '#pragma once',
    '',
    '#include <cstddef>',
    '#include <cstdint>',
    '#include <type_traits>',
    '',
    'namespace nccl_ext {',
    '',
    '// core/src/errors/codes.ts',
    ...enumeration('ErrorCode', [
      ['NONE', 0],
      ...Object.entries(errorNumbers).map(([code, value]) => [code.replace(/^ERR_/, ''), value]),
    ]),
    '',
    '// core/src/contract/device-records.ts: operations that records name.',
    ...enumeration(
      'DeviceOp',
      contract.deviceOps.map((name, number) => [name, number]),
    ),
    '',
    '// The error record of a stream or graph, in pinned memory.',
    ...struct('DeviceStatus', contract.deviceStatusFields, { bytes: deviceRecordBytes, aligned: true }),
    '',
    '// What the host tells the running kernels of one rank, in pinned memory.',
    ...struct('RankWords', contract.rankWordsFields, { bytes: deviceRecordBytes, aligned: true }),
    '',
    "// core/src/contract/kernel-guard.ts: a user's kernel takes it by value; the backend fills it for every launch.",
    ...struct('KernelGuard', contract.kernelGuardFields, { bytes: kernelGuardBytes }),
    '',
    '}  // namespace nccl_ext',
    '',
  ];
  return lines.join('\n');
}

/** `OUT_OF_MEMORY` becomes kOutOfMemory, `bf16` kBf16. */
export function constantOf(name) {
  const words = name.toLowerCase().split('_');
  return `k${words.map((word) => word[0].toUpperCase() + word.slice(1)).join('')}`;
}

const types = { i32: { name: 'std::int32_t', bytes: 4 }, u64: { name: 'std::uint64_t', bytes: 8 } };

function enumeration(name, entries) {
  const rows = entries.map(([entry, value]) => `  ${constantOf(entry)} = ${value},`);
  return [`enum class ${name} : std::int32_t {`, ...rows, '};'];
}

/** A struct with its fields' offsets and its size as assertions; `aligned` gives it cache lines of its own. */
function struct(name, fields, { bytes, aligned = false }) {
  let end = 0;
  const offsets = fields.map(({ type }) => {
    const offset = Math.ceil(end / types[type].bytes) * types[type].bytes;
    end = offset + types[type].bytes;
    return offset;
  });
  const declarations = fields.map(
    ({ type, name: field, initial }) => `  ${types[type].name} ${field} = ${initial};`,
  );
  const width = Math.max(...declarations.map(({ length }) => length));
  if (end > bytes) throw new Error(`${name} has ${end} bytes, more than ${bytes}`);
  return [
    `struct ${aligned ? `alignas(${bytes}) ` : ''}${name} {`,
    ...fields.map(({ doc }, i) => `${declarations[i].padEnd(width)}  // ${doc}`),
    '};',
    `static_assert(sizeof(${name}) == ${bytes} && std::is_trivially_copyable_v<${name}>);`,
    ...fields.map(({ name: field }, i) => `static_assert(offsetof(${name}, ${field}) == ${offsets[i]});`),
  ];
}
