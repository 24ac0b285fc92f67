// SPDX-License-Identifier: Apache-2.0
// The rules of native sources find what they look for.

import { describe, expect, it } from 'vitest';
import { edgeProblems } from './native-edges.mjs';
import { wordProblems } from './native-words.mjs';

const spdx = '// SPDX-License-Identifier: Apache-2.0\n';

describe('edgeProblems', () => {
  const card = `${spdx}// dispatch: sends.
// flow    x -> peer
// edges   E1 enter   all ranks -> all ranks     E2 tokens  release.system -> acquire.system
//         recv reusable after next E1; as dispatch_ll.E3 does
// limits  topk <= 32      failure  E1-E2 time out, code E9
#pragma once
`;
  const enter = 'publish<kSystem>(flag, n);  // E1 release\nwait(flag, n);  // E1 acquire\n';
  const tokens =
    '// E2 release, to the peer\npublish<kSystem>(flag, n);\nobserve<kSystem>(flag);  // E2 acquire\n';
  const check = (...texts) =>
    edgeProblems(texts.map((text, index) => ({ path: `m2n/file${index}.cu`, text })));

  it('is content with edges that have both ends', () => {
    expect(check(`${card}${enter}${tokens}`)).toEqual([]);
  });

  it.each([
    ['a release without acquire', `${card}${enter}// E2 release\n`, 'm2n/file0.cu: edge E2 has no acquire'],
    ['an acquire without release', `${card}${enter}// E2 acquire\n`, 'm2n/file0.cu: edge E2 has no release'],
    [
      'an end without entry',
      `${card}${enter}${tokens}f();  // E3 release\n`,
      'm2n/file0.cu:13: E3 release has no entry in the card',
    ],
    [
      'an end in a file without card',
      `${spdx}f();  // E1 acquire\n`,
      'm2n/file0.cu:2: E1 acquire has no entry in the card',
    ],
  ])('finds %s', (_, text, problem) => {
    expect(check(text)).toEqual([problem]);
  });

  it('finds an entry without ends', () => {
    const [first, second] = check(`${card}${enter}`);
    expect([first, second]).toEqual([
      'm2n/file0.cu: edge E2 has no release',
      'm2n/file0.cu: edge E2 has no acquire',
    ]);
  });

  it('lets a file end an edge of another one, by name', () => {
    const other = `${spdx}// unpack: reads.\n// edges   E2 (m2n/file0.cu)\n#pragma once\n// E2 acquire\n`;
    const half = `${card}${enter}// E2 release\n`;
    expect(check(half, other)).toEqual([]);
    expect(check(half, other.replace('(m2n/file0.cu)', '(m2n/none.cu)'))).toContain(
      'm2n/file1.cu: no edge E2 in the card of m2n/none.cu',
    );
  });

  it('takes an example in a card for no end', () => {
    expect(
      check(`${spdx}// kernel: for your own.\n//   publish(flag);  // E7 release\n#pragma once\n`),
    ).toEqual([]);
  });
});

describe('wordProblems', () => {
  const check = (path, code) => wordProblems([{ path, text: `${spdx}${code}\n` }]);

  it.each([
    ['m2n/pack.cu', 'flag.store(1, cuda::std::memory_order_release);', 'memory_order_release'],
    ['runtime/shared/guard.hpp', 'load(std::memory_order_relaxed);', 'memory_order_relaxed'],
    ['ep/dispatch.cu', '__threadfence_system();', '__threadfence_system'],
    ['ep/dispatch.cu', 'volatile int* flag;', 'volatile'],
    ['ep/dispatch.cu', 'asm("bar.sync 0;");', 'asm'],
    ['ep/dispatch.cu', '#if __CUDA_ARCH__ >= 900', '__CUDA_ARCH__'],
    ['ep/args.hpp', '#if CUDART_VERSION >= 13000', 'CUDART_VERSION'],
    ['runtime/streams.cc', '#include <napi.h>', '<napi.h>'],
    ['runtime/streams.cc', 'Napi::Value value;', 'Napi'],
    ['ep/dispatch.cu', 'printf("here");', 'printf('],
  ])('%s may not say %s', (path, code, word) => {
    const [problem, ...more] = check(path, code);
    expect(problem).toMatch(`${path}:2: ${word} is not for this file`);
    expect(more).toEqual([]);
  });

  it.each([
    ['runtime/shared/sync.hpp', 'store(value, cuda::std::memory_order_release);'],
    ['m2n/move_gin.cu', 'gin.signal(team, peer, cuda::memory_order_release);'],
    ['runtime/worker.cc', 'stop.load(std::memory_order_relaxed);'],
    ['runtime/ptx.cuh', 'asm volatile("mov");'],
    ['ep/dispatch.cu', '// no printf() here, and no volatile'],
    ['tests/host/sync_test.cc', 'volatile int seen;'],
  ])('%s may say %s', (path, code) => {
    expect(check(path, code)).toEqual([]);
  });

  it('asks for the SPDX line', () => {
    expect(wordProblems([{ path: 'a.cc', text: 'int x;\n' }])).toEqual([
      'a.cc: the first line must be the SPDX line',
    ]);
  });
});
