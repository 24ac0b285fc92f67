// SPDX-License-Identifier: Apache-2.0
// Which tensors each operation takes and gives, by layout and pass: the table that checks calls, sizes buffers and makes the documentation.

import type { EpLayout, EpPass } from '@nccl-ext/core/contract';

export type EpOperation = 'route' | 'dispatch' | 'combine';

/**
 * Extents by name: B tokens of this rank, K top-k, H hidden (bytes of packed f4: H/2), R ranks, M most tokens per rank, L local experts, N received
 * rows (any number that the call's tensors agree on), S scales per row.
 */
export type Extent = 'B' | 'K' | 'H' | 'R' | 'M' | 'L' | 'N' | 'S' | 'R*M' | '1';

/** `scales`: as the quantization of the call says. */
export type Presence = 'required' | 'optional' | 'scales';

/**
 * `payload`: the group's dtype. `tokens`: that of input rows under the call's quantization; `rows`: of output rows; `scale`: of scales.
 * `index`: i32 or i64.
 */
export type FieldDType = 'payload' | 'tokens' | 'rows' | 'scale' | 'f32' | 'index';

export interface FieldRule {
  /** Where it is in the call: `weights` of the options, `out.tokens` of its outputs. */
  readonly field: string;
  readonly presence: Presence;
  readonly shape: readonly Extent[];
  readonly dtype: FieldDType;
}

/** No list for a pass: the layout does not have it. What is in no list is forbidden. */
export type FieldLists = { readonly [P in EpPass]?: readonly FieldRule[] };

export type FieldMatrix = {
  readonly [L in EpLayout]: { readonly [O in EpOperation]: FieldLists };
};

const required = (field: string, shape: readonly Extent[], dtype: FieldDType): FieldRule => ({
  field,
  presence: 'required',
  shape,
  dtype,
});
const optional = (field: string, shape: readonly Extent[], dtype: FieldDType): FieldRule => ({
  field,
  presence: 'optional',
  shape,
  dtype,
});
const scales = (field: string, shape: readonly Extent[]): FieldRule => ({
  field,
  presence: 'scales',
  shape,
  dtype: 'scale',
});

const topkIdx = required('topkIdx', ['B', 'K'], 'index');
/** What every forward dispatch reads. */
const inputs = [
  required('tokens', ['B', 'H'], 'tokens'),
  required('weights', ['B', 'K'], 'f32'),
  scales('scales', ['B', 'S']),
];
const result = required('out.tokens', ['B', 'H'], 'payload');
const weightGradients = required('out.topkWeights', ['B', 'K'], 'f32');
const gradientRows = [
  required('tokens', ['B', 'H'], 'payload'),
  required('out.tokens', ['N', 'H'], 'payload'),
];
/** Counts that a high-throughput route leaves on the device. */
const routeCounts = [
  optional('weights', ['B', 'K'], 'f32'),
  optional('counts.expertCounts', ['L'], 'index'),
  optional('counts.sourceCounts', ['R'], 'index'),
  optional('counts.total', ['1'], 'index'),
  optional('counts.demand', ['1'], 'index'),
];

export const fieldMatrix: FieldMatrix = {
  'expert-major': {
    route: { forward: [topkIdx] },
    dispatch: {
      forward: [
        ...inputs,
        required('out.tokens', ['L', 'R*M', 'H'], 'rows'),
        scales('out.scales', ['L', 'R*M', 'S']),
        required('out.expertCounts', ['L'], 'index'),
        optional('out.sourceCounts', ['R'], 'index'),
      ],
    },
    combine: { forward: [required('rows', ['L', 'R*M', 'H'], 'payload'), result] },
  },
  'rank-major': {
    route: { forward: [topkIdx] },
    dispatch: {
      forward: [
        ...inputs,
        required('out.tokens', ['R', 'M', 'H'], 'rows'),
        scales('out.scales', ['R', 'M', 'S']),
        required('out.topkWeights', ['R', 'M', 'K'], 'f32'),
        required('out.topkIdx', ['R', 'M', 'K'], 'index'),
        optional('out.sourceCounts', ['R'], 'index'),
      ],
    },
    combine: { forward: [required('rows', ['R', 'M', 'H'], 'payload'), result] },
  },
  flat: {
    route: { forward: [topkIdx, ...routeCounts] },
    dispatch: {
      forward: [
        ...inputs,
        required('out.tokens', ['N', 'H'], 'rows'),
        scales('out.scales', ['N', 'S']),
        optional('out.topkWeights', ['N', 'K'], 'f32'),
        optional('out.topkIdx', ['N', 'K'], 'index'),
      ],
      backward: gradientRows,
    },
    combine: {
      forward: [required('rows', ['N', 'H'], 'payload'), result],
      backward: [
        required('rows', ['N', 'H'], 'payload'),
        required('weights', ['N', 'K'], 'f32'),
        result,
        weightGradients,
      ],
    },
  },
  packed: {
    route: { forward: [topkIdx, ...routeCounts, optional('counts.expertOffsets', ['L'], 'index')] },
    dispatch: {
      forward: [
        ...inputs,
        required('out.tokens', ['N', 'H'], 'rows'),
        scales('out.scales', ['N', 'S']),
        optional('out.topkWeights', ['N'], 'f32'),
      ],
      backward: gradientRows,
    },
    combine: {
      forward: [required('rows', ['N', 'H'], 'payload'), result],
      backward: [
        required('rows', ['N', 'H'], 'payload'),
        required('weights', ['N'], 'f32'),
        result,
        weightGradients,
      ],
    },
  },
};
