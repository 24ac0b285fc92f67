// SPDX-License-Identifier: Apache-2.0
// Tensors that are not dense storages of their own: q, k and v in one buffer, rows with padding, weights in two places.

import { interleaved, type Placement, replicate, shard } from '@nccl-ext/core';
import type { M2nCase, StoredSpec, TensorSpec } from './case.js';
import { grid, line, moveCase } from './side.js';

/** Query rows, then key rows, then value rows. */
const segments = [32, 8, 8];

export const storageCases: readonly M2nCase[] = [...fused(), ...padded(), ...tied()];

function fused(): readonly M2nCase[] {
  const parts = (
    sourceRanks: number,
    destinationRanks: number,
    stored: Pick<TensorSpec, 'sourceStored' | 'destinationStored'>,
    more: Partial<TensorSpec> = {},
  ): readonly TensorSpec[] =>
    segments.map((rows) => ({
      shape: [rows, 24],
      dtype: 'bf16',
      source: line(sourceRanks, shard(0)),
      destination: line(destinationRanks, shard(0), sourceRanks),
      ...stored,
      ...more,
    }));
  const qkv = { fusedIn: 'qkv' };
  const reports = ['NVIDIA-NeMo/RL#2413', 'areal-project/AReaL#1305'];
  const whole: Placement = shard(0, interleaved(segments));
  return [
    moveCase('storages', 'q, k and v to one fused storage', 6, parts(4, 2, { destinationStored: qkv }), {
      reports,
    }),
    moveCase('storages', 'one fused storage to q, k and v', 6, parts(2, 4, { sourceStored: qkv }), {
      reports,
    }),
    moveCase(
      'storages',
      'fused on both sides, other tensor parallelism',
      6,
      parts(2, 4, { sourceStored: qkv, destinationStored: { ...qkv, offset: 3 } }),
      { repeat: 3, reports },
    ),
    moveCase(
      'storages',
      'fused, converted on the way',
      6,
      parts(2, 4, { destinationStored: qkv }, { castTo: 'f8e4m3' }),
    ),
    moveCase('storages', 'a fused tensor as one interleaved tensor beside its parts', 6, [
      ...parts(2, 4, { destinationStored: qkv }),
      {
        shape: [48, 24],
        dtype: 'bf16',
        source: line(2, whole),
        destination: line(4, whole, 2),
      },
    ]),
  ];
}

function padded(): readonly M2nCase[] {
  const move = (
    what: string,
    sourceStored: StoredSpec,
    destinationStored: StoredSpec,
    more: Partial<TensorSpec> = {},
  ): M2nCase =>
    moveCase('storages', what, 6, [
      {
        shape: [21, 34],
        dtype: 'bf16',
        source: line(2, shard(0)),
        destination: line(4, shard(1), 2),
        sourceStored,
        destinationStored,
        ...more,
      },
      {
        shape: [5, 4, 9],
        dtype: 'i32',
        source: grid(2, 1, [shard(1), replicate()]),
        destination: line(4, shard(0), 2),
        sourceStored,
        destinationStored,
      },
    ]);
  return [
    move('padded rows at the source', { padding: 5 }, {}),
    move('padded rows at the destination', {}, { padding: 3 }),
    move('padded rows on both sides, unaligned', { padding: 1, offset: 1 }, { padding: 7, offset: 5 }),
    move('padded rows, converted', { padding: 2 }, { padding: 1 }, { dtype: 'f32', castTo: 'f16' }),
    {
      ...move(
        'padded rows, forwarded between domains',
        { padding: 2 },
        { padding: 5 },
        {
          destination: grid(2, 2, [shard(1), replicate()], 2),
        },
      ),
      topology: {
        ranks: Array.from({ length: 6 }, (_, rank) => {
          const node = Math.floor(rank / 2);
          return { node, domain: node, rail: rank % 2, device: rank % 2 };
        }),
      },
      verify: true,
    },
    { ...move('padded rows, replayed', { padding: 2 }, { padding: 5 }), repeat: 5, capture: 'cold' },
  ];
}

/** An embedding that is also the head: on the first and on the last pipeline stage. */
function tied(): readonly M2nCase[] {
  const shape = [40, 12];
  const two = (startRank: number) => line(2, shard(0), startRank);
  const cases: Readonly<Record<string, TensorSpec>> = {
    'tied on two stages, one engine': {
      shape,
      dtype: 'bf16',
      source: two(0),
      sourceStored: { copies: [two(2)] },
      destination: line(4, shard(0), 4),
    },
    'tied on two stages of the engine': {
      shape,
      dtype: 'bf16',
      source: line(4, shard(0)),
      destination: two(4),
      destinationStored: { copies: [line(2, shard(1), 6)] },
    },
    'two storages of the same ranks as sources': {
      shape,
      dtype: 'bf16',
      source: two(0),
      sourceStored: { copies: [line(2, shard(1))] },
      destination: line(4, shard(0), 4),
    },
    'two storages of the same ranks as destinations': {
      shape,
      dtype: 'bf16',
      source: line(4, shard(0)),
      destination: line(4, shard(0), 4),
      destinationStored: { copies: [line(4, shard(1), 4)] },
    },
    'two storages on both sides of one mesh': {
      shape,
      dtype: 'bf16',
      source: line(4, shard(0)),
      sourceStored: { copies: [line(4, shard(1))] },
      destination: line(4, replicate()),
      destinationStored: { copies: [line(4, shard(1)), line(8, shard(0))] },
    },
    'parts of a tensor in a second place': {
      shape,
      dtype: 'f32',
      castTo: 'bf16',
      source: two(0),
      sourceStored: { copies: [line(1, shard(0, { kind: 'ranges', ranges: [[7, 31]] }), 3)] },
      destination: grid(2, 2, [replicate(), shard(0)], 4),
      destinationStored: { copies: [line(1, shard(1, { kind: 'ranges', ranges: [[2, 11]] }), 6)] },
    },
  };
  return Object.entries(cases).map(([what, tensor]) =>
    moveCase('storages', what, 8, [tensor], { repeat: 2 }),
  );
}
