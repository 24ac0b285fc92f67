// SPDX-License-Identifier: Apache-2.0
// Manifests of a tensor or two.

import type { Manifest, ManifestTensor } from './manifest-schema.js';

export const manifest = (ranks: Manifest['ranks'], rest: Partial<Manifest> = {}): Manifest => ({
  format: 'nccl-ext.m2n.manifest',
  version: 1,
  ranks,
  ...rest,
});
/** Rank 0 with these tensors. */
export const one = (tensors: ManifestTensor[], rest: Partial<Manifest> = {}) =>
  manifest([{ rank: 0, tensors }], rest);
export const box = (start: number[], size: number[]) => ({ start, size });
export const whole = (name: string, shape: number[], source = name): ManifestTensor => ({
  name,
  dtype: 'BF16',
  shape,
  pieces: [
    {
      source,
      global: box(
        shape.map(() => 0),
        shape,
      ),
    },
  ],
});

/** Rank 0 with one tensor, changed. */
export const tensor = (rest: Partial<ManifestTensor>) => one([{ ...whole('t', [2, 3]), ...rest }]);
