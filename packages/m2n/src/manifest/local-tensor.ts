// SPDX-License-Identifier: Apache-2.0
// Reads the tensors of one rank of a manifest, with their defaults filled in.

import { type DType, dtypeBytes, isDType } from '@nccl-ext/core';
import { dtypeOfSafetensors } from '../safetensors/dtype-names.js';
import { errorAt, type ManifestPlace } from './manifest-error.js';
import type { ManifestRank, ManifestTensor } from './manifest-schema.js';
import { isInjective, rowMajor, type StridedTensor } from './strided-bytes.js';

/** A tensor of a rank with its defaults filled in. */
export interface LocalTensor extends StridedTensor {
  readonly tensor: ManifestTensor;
  readonly dtype: DType;
  readonly allocation: string;
  readonly place: ManifestPlace;
}

/** @throws ERR_MANIFEST for repeated names, unknown dtypes and strides that fold elements onto each other. */
export function localTensors({ rank, tensors }: ManifestRank, field: string): readonly LocalTensor[] {
  const names = new Set<string>();
  return tensors.map((tensor, j) => {
    const { name, shape, strides, allocation = name, offset = 0 } = tensor;
    const place = { rank, tensor: name, field: `${field}.tensors[${j}]` };
    const dtype = isDType(tensor.dtype) ? tensor.dtype : dtypeOfSafetensors(tensor.dtype);
    if (names.has(name)) throw errorAt('ERR_MANIFEST', place, 'the rank has two tensors of this name');
    names.add(name);
    if (dtype === undefined) {
      const problem = `dtype ${JSON.stringify(tensor.dtype)} is not known`;
      throw errorAt('ERR_MANIFEST', { ...place, field: `${place.field}.dtype` }, problem);
    }
    if (strides !== undefined && strides.length !== shape.length) {
      const problem = `strides must have one entry per dimension (${shape.length}), got ${strides.length}`;
      throw errorAt('ERR_MANIFEST', { ...place, field: `${place.field}.strides` }, problem);
    }
    const elementBytes = dtypeBytes(dtype);
    const resolved = { tensor, dtype, allocation, offset, shape, elementBytes, place };
    const local = { ...resolved, strides: strides ?? rowMajor(shape, elementBytes) };
    if (!isInjective(local)) {
      const problem = `strides [${local.strides.join(', ')}] of shape [${shape.join(', ')}] put two elements on one byte`;
      throw errorAt('ERR_MANIFEST', { ...place, field: `${place.field}.strides` }, problem);
    }
    return local;
  });
}
