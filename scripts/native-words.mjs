// SPDX-License-Identifier: Apache-2.0
// Words of native code that may stand in few files only, so that a reader finds all memory orders, assembly and version switches in one
// place each.

/** `only`: where the word may stand; `call`: a line may hold it as an argument of such a call. */
const rules = [
  {
    word: /\bmemory_order\w*/,
    in: /\.(cu|cuh)$|\/shared\//,
    only: /^runtime\/shared\/sync\.hpp$/,
    // NCCL's sessions take the order as an argument.
    call: /\b(put|putValue|signal|waitSignal|readSignal|flush|sync|arrive|wait)\s*[<(]/,
    use: 'publish, observe or peek',
  },
  { word: /\b__threadfence\w*/, in: /./, only: /^$/, use: 'publish and observe' },
  { word: /\bvolatile\b/, in: /./, only: /^runtime\/(bulk_)?ptx\.cuh$/, use: 'publish, observe or peek' },
  { word: /\basm\b/, in: /./, only: /^runtime\/(bulk_)?ptx\.cuh$/, use: 'a function of runtime/ptx.cuh' },
  {
    word: /\b__CUDA_ARCH__\b/,
    in: /./,
    only: /^runtime\/(arch|ptx|bulk_ptx)\.cuh$/,
    use: 'a constant of runtime/arch.cuh',
  },
  {
    word: /\bCUDART_VERSION\b/,
    in: /./,
    only: /^(runtime\/arch\.cuh|runtime\/\w+\.cc|node\/addon\.cc)$/,
    use: 'a capability',
  },
  { word: /<napi\.h>/, in: /./, only: /^node\/napi_setup\.hpp$/, use: 'node/napi_setup.hpp' },
  { word: /\b(napi_\w+|Napi)\b/, in: /./, only: /^node\//, use: 'plain C++ outside node/' },
  {
    word: /\b(printf|__trap)\s*\(/,
    in: /\.(cu|cuh)$|\/shared\//,
    only: /^$/,
    use: 'a record (runtime/shared/status.hpp)',
  },
];

/** @param files rows of { path, text }, paths from native/ on. @returns one line for each problem */
export function wordProblems(files) {
  return files.flatMap(({ path, text }) => {
    const problems = text.startsWith('// SPDX-License-Identifier: Apache-2.0\n')
      ? []
      : [`${path}: the first line must be the SPDX line`];
    // Tests break rules on purpose.
    if (path.startsWith('tests/')) return problems;
    for (const [index, line] of text.split('\n').entries()) {
      const code = line.replace(/\/\/.*/, '');
      for (const { word, in: where, only, call, use } of rules) {
        const found = word.exec(code)?.[0];
        if (found === undefined || !where.test(path) || only.test(path) || call?.test(code)) continue;
        problems.push(`${path}:${index + 1}: ${found} is not for this file; use ${use}`);
      }
    }
    return problems;
  });
}
