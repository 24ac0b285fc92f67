// SPDX-License-Identifier: Apache-2.0
// The ends of what a tensor can be: nothing, one element, no dimension, eight of them, primes, short rows, unaligned memory.

import { type DType, replicate, shard, strided } from '@nccl-ext/core';
import type { M2nCase, TensorSpec } from './case.js';
import { grid, line, moveCase } from './side.js';

export const boundaryCases: readonly M2nCase[] = [
  ...dimensions(),
  boundary('an empty tensor', {
    shape: [0, 8],
    source: line(2, shard(0)),
    destination: line(2, shard(1), 2),
  }),
  boundary('an empty tensor among others', [
    { shape: [0], source: line(2, shard(0)), destination: line(2, shard(0), 2) },
    { shape: [6, 4], source: line(2, shard(0)), destination: line(2, shard(1), 2) },
    { shape: [3, 0, 5], source: line(2, replicate()), destination: line(2, shard(2), 2) },
  ]),
  boundary('one element', { shape: [1, 1, 1], source: line(2, shard(1)), destination: line(2, shard(2), 2) }),
  boundary('one element to full copies', {
    shape: [1],
    source: line(2, shard(0)),
    destination: line(2, replicate(), 2),
  }),
  ...[2, 13, 127, 1031].map((prime) =>
    boundary(`prime extents ${prime} x ${prime === 1031 ? 17 : prime}`, {
      shape: [prime, prime === 1031 ? 17 : prime],
      source: line(2, shard(0)),
      destination: line(2, shard(1), 2),
    }),
  ),
  ...shortRows(),
  ...unaligned(),
];

type Sides = Pick<TensorSpec, 'shape' | 'source' | 'destination'> & Partial<TensorSpec>;

function boundary(what: string, tensors: Sides | readonly Sides[], ranks = 4): M2nCase {
  const list = [tensors].flat() as readonly Sides[];
  return moveCase(
    'boundaries',
    what,
    ranks,
    list.map((tensor) => ({ dtype: 'bf16' as DType, ...tensor })),
  );
}

function dimensions(): readonly M2nCase[] {
  const shapes = [
    [],
    [12],
    [5, 4, 3, 6],
    [3, 4, 2, 5, 3],
    [2, 3, 4, 2, 3, 2],
    [2, 3, 2, 2, 3, 2, 3],
    [2, 3, 2, 2, 3, 2, 2, 3],
  ];
  return [
    moveCase('many-dims', 'a scalar', 4, [
      { shape: [], dtype: 'f64', source: line(2, replicate()), destination: line(2, replicate(), 2) },
    ]),
    ...shapes
      .filter((shape) => shape.length > 1)
      .flatMap((shape) => {
        const last = shape.length - 1;
        const middle = Math.floor(shape.length / 2);
        const tensor = { shape, dtype: 'i32' as DType };
        const name = `${shape.length} dims`;
        return [
          moveCase('many-dims', `${name}, first to last`, 4, [
            { ...tensor, source: line(2, shard(0)), destination: line(2, shard(last), 2) },
          ]),
          moveCase('many-dims', `${name}, middle to first and last`, 7, [
            {
              ...tensor,
              source: line(3, shard(middle)),
              destination: grid(2, 2, [shard(0), shard(last)], 3),
            },
          ]),
        ];
      }),
    moveCase(
      'many-dims',
      'repeated refit into a blocked 4-D layout',
      8,
      [
        {
          shape: [8, 6, 4, 10],
          dtype: 'bf16',
          source: grid(2, 2, [shard(0), shard(1)]),
          destination: grid(2, 2, [shard(1, strided(2)), shard(3)], 4),
        },
      ],
      { repeat: 10, reports: ['NVIDIA-NeMo/RL#3166'] },
    ),
  ];
}

/** Last dims of 1 to 17 bytes: shorter, as long and longer than a vector register. */
function shortRows(): readonly M2nCase[] {
  return Array.from({ length: 17 }, (_, i) => i + 1).map((bytes) =>
    boundary(`rows of ${bytes} bytes`, [
      { shape: [33, bytes], dtype: 'u8', source: line(2, shard(0)), destination: line(2, shard(1), 2) },
      { shape: [33, 2 * bytes], dtype: 'u8', source: line(2, shard(1)), destination: line(2, shard(0), 2) },
    ]),
  );
}

/** Local tensors that start at any element, so that no copy may count on aligned addresses. */
function unaligned(): readonly M2nCase[] {
  return [1, 2, 3, 5, 7, 9, 15].map((offset) =>
    boundary(
      `memory that starts ${offset} elements off`,
      (['u8', 'bf16', 'f32', 'f64'] as const).map((dtype) => ({
        shape: [19, 45],
        dtype,
        source: line(2, shard(1)),
        destination: line(2, shard(0), 2),
        sourceStored: { offset: offset },
        destinationStored: { offset: 2 * offset + 1 },
      })),
    ),
  );
}
