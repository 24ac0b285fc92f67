// SPDX-License-Identifier: Apache-2.0
// A side that contradicts itself is refused, with rank, tensor and field.

import type { ErrorCode } from '@nccl-ext/core';
import { describe, expect, it } from 'vitest';
import { refusal } from '../refusal.test-util.js';
import type { Manifest } from './manifest-schema.js';
import { manifestSide } from './manifest-side.js';
import { box, manifest, one, tensor, whole } from './small-manifests.test-util.js';

describe('refused, with rank, tensor and field', () => {
  const wrong = (document: Manifest) => refusal(() => manifestSide(document, 'source'));
  const cases: [title: string, document: Manifest, code: ErrorCode, words: RegExp][] = [
    [
      'a rank twice',
      manifest([
        { rank: 1, tensors: [] },
        { rank: 1, tensors: [] },
      ]),
      'ERR_MANIFEST',
      /rank 1 \(ranks\[1\]\.rank\): the rank occurs twice/,
    ],
    [
      'a rank outside the world',
      manifest([{ rank: 2, tensors: [] }], { worldSize: 2 }),
      'ERR_MANIFEST',
      /rank 2 \(ranks\[0\]\.rank\): worldSize is 2/,
    ],
    [
      'a name twice',
      one([whole('t', [2]), whole('t', [2])]),
      'ERR_MANIFEST',
      /tensor "t" \(ranks\[0\]\.tensors\[1\]\): .*two tensors/,
    ],
    [
      'an unknown dtype',
      tensor({ dtype: 'FP99' }),
      'ERR_MANIFEST',
      /tensors\[0\]\.dtype\): dtype "FP99" is not known/,
    ],
    ['too few strides', tensor({ strides: [2] }), 'ERR_MANIFEST', /tensors\[0\]\.strides\): .*\(2\), got 1/],
    [
      'strides that fold',
      tensor({ strides: [4, 2] }),
      'ERR_MANIFEST',
      /strides \[4, 2\] of shape \[2, 3\] put two elements on one byte/,
    ],
    [
      'an allocation twice',
      manifest([
        {
          rank: 0,
          tensors: [],
          allocations: [
            { name: 'a', bytes: 1 },
            { name: 'a', bytes: 1 },
          ],
        },
      ]),
      'ERR_MANIFEST',
      /allocations\[1\]\): the name "a" occurs twice/,
    ],
    [
      'an allocation that is not declared',
      manifest([
        {
          rank: 0,
          tensors: [{ ...whole('t', [2]), allocation: 'b' }],
          allocations: [{ name: 'a', bytes: 9 }],
        },
      ]),
      'ERR_MANIFEST',
      /allocation "b" is not among/,
    ],
    [
      'a tensor behind the end of its allocation',
      manifest([
        {
          rank: 0,
          tensors: [{ ...whole('t', [4]), allocation: 'a', offset: 2 }],
          allocations: [{ name: 'a', bytes: 9 }],
        },
      ]),
      'ERR_MANIFEST',
      /tensors\[0\]\.offset\): it ends at byte 10, but allocation "a" has 9/,
    ],
    [
      'two tensors on the same bytes',
      one([
        { ...whole('t', [4]), allocation: 'a' },
        { ...whole('u', [4]), allocation: 'a', offset: 6 },
      ]),
      'ERR_OVERLAP',
      /tensor "u" \(ranks\[0\]\.tensors\[1\]\.offset\): shares bytes of allocation "a" with tensor "t".*"alias": "t"/s,
    ],
    [
      'an alias of nothing',
      one([{ ...whole('t', [4]), alias: 'u' }]),
      'ERR_MANIFEST',
      /tensors\[0\]\.alias\): "u" is no tensor/,
    ],
    ['an alias of an alias', one([{ ...whole('t', [4]), alias: 't' }]), 'ERR_MANIFEST', /an alias itself/],
    [
      'an alias of other memory',
      one([whole('t', [4]), { ...whole('u', [4]), alias: 't' }]),
      'ERR_MANIFEST',
      /allocation, offset, dtype, shape and strides must be those of "t"/,
    ],
    [
      'no pieces',
      tensor({ pieces: undefined }),
      'ERR_MANIFEST',
      /tensors\[0\]\.pieces\): pieces are missing/,
    ],
    [
      'a local box outside',
      tensor({ pieces: [{ source: 's', global: box([0, 0], [2, 3]), local: box([1, 0], [2, 3]) }] }),
      'ERR_MANIFEST',
      /pieces\[0\]\.local\): start \[1, 0\] and size \[2, 3\] do not lie in the shape \[2, 3\]/,
    ],
    [
      'a local box of other rank',
      tensor({ pieces: [{ source: 's', global: box([0], [2]), local: box([0], [2]) }] }),
      'ERR_MANIFEST',
      /pieces\[0\]\.local/,
    ],
    [
      'sizes that differ',
      tensor({ pieces: [{ source: 's', global: box([0, 0], [3, 2]) }] }),
      'ERR_MANIFEST',
      /pieces\[0\]\): sizes of global \[3, 2\] and local \[2, 3\] differ/,
    ],
    [
      'start and size of different length',
      tensor({ pieces: [{ source: 's', global: box([0], [2, 3]) }] }),
      'ERR_MANIFEST',
      /pieces\[0\]\)/,
    ],
    [
      'two pieces on the same elements',
      tensor({
        pieces: [
          { source: 's', global: box([0, 0], [2, 2]), local: box([0, 0], [2, 2]) },
          { source: 's', global: box([0, 2], [2, 2]), local: box([0, 1], [2, 2]) },
        ],
      }),
      'ERR_OVERLAP',
      /tensor "t" \(ranks\[0\]\.tensors\[0\]\.pieces\[1\]\.local\): \[0:2, 1:3\] overlaps \[0:2, 0:2\] of pieces\[0\]/,
    ],
    [
      'another dtype on another rank',
      manifest([
        { rank: 0, tensors: [whole('t', [2])] },
        { rank: 1, tensors: [{ ...whole('t', [2]), dtype: 'F32' }] },
      ]),
      'ERR_MANIFEST',
      /rank 1, tensor "t" .*has t as f32, but rank 0 has it as bf16/,
    ],
    [
      'another number of dimensions',
      one([whole('t', [2]), whole('u', [2, 1], 't')]),
      'ERR_MANIFEST',
      /has 2 dimensions of t, which has 1/,
    ],
    [
      'a box outside the declared extents',
      one([whole('t', [4])], { globals: { t: [3] } }),
      'ERR_MANIFEST',
      /pieces\[0\]\.global\): reaches to 4 in dimension 0 of t, whose declared extents are \[3\]/,
    ],
  ];
  it.each(cases)('%s', (_title, document, code, words) => {
    const error = wrong(document);
    expect(error.code).toBe(code);
    expect(error.message).toMatch(words);
    expect(error.rank).toBeTypeOf('number');
    expect(error.field).toMatch(/^ranks\[/);
  });
});
