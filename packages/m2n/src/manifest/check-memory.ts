// SPDX-License-Identifier: Apache-2.0
// Proves that the tensors of one rank of a manifest lie inside their allocations and apart from each other.

import type { LocalTensor } from './local-tensor.js';
import { errorAt } from './manifest-error.js';
import type { ManifestRank } from './manifest-schema.js';
import { endOf, overlaps } from './strided-bytes.js';

/**
 * Bytes of every allocation: what is declared, else what its tensors reach.
 *
 * @throws ERR_MANIFEST when a tensor ends behind its allocation or names one that is not declared.
 */
export function allocationsOf(
  { rank, allocations = [] }: ManifestRank,
  tensors: readonly LocalTensor[],
  field: string,
): ReadonlyMap<string, number> {
  const declared = new Map<string, number>();
  for (const [j, { name, bytes }] of allocations.entries()) {
    const place = { rank, field: `${field}.allocations[${j}]` };
    if (declared.has(name))
      throw errorAt('ERR_MANIFEST', place, `the name ${JSON.stringify(name)} occurs twice`);
    declared.set(name, bytes);
  }
  const sizes = new Map(declared);
  for (const local of tensors) {
    const { allocation, tensor, place } = local;
    const end = endOf(local);
    const bytes = declared.get(allocation);
    if (bytes === undefined && tensor.allocation !== undefined && allocations.length > 0) {
      const problem = `allocation ${JSON.stringify(allocation)} is not among the allocations of the rank`;
      throw errorAt('ERR_MANIFEST', { ...place, field: `${place.field}.allocation` }, problem);
    }
    if (bytes !== undefined && end > bytes) {
      const problem = `it ends at byte ${end}, but allocation ${JSON.stringify(allocation)} has ${bytes}`;
      throw errorAt('ERR_MANIFEST', { ...place, field: `${place.field}.offset` }, problem);
    }
    sizes.set(allocation, Math.max(sizes.get(allocation) ?? 0, end));
  }
  return sizes;
}

/**
 * Tensors of one allocation may interleave, but share no byte unless one is declared as alias.
 *
 * @throws ERR_OVERLAP
 */
export function requireApart(tensors: readonly LocalTensor[]): void {
  const byAllocation = new Map<string, LocalTensor[]>();
  for (const local of tensors) {
    if (local.tensor.alias !== undefined) continue;
    const list = byAllocation.get(local.allocation);
    if (list === undefined) byAllocation.set(local.allocation, [local]);
    else list.push(local);
  }
  for (const list of byAllocation.values()) {
    list.sort((a, b) => a.offset - b.offset);
    let open: LocalTensor[] = [];
    for (const local of list) {
      open = open.filter((earlier) => endOf(earlier) > local.offset);
      const other = open.find((earlier) => overlaps(earlier, local));
      if (other !== undefined) {
        const problem = `shares bytes of allocation ${JSON.stringify(local.allocation)} with tensor ${JSON.stringify(other.place.tensor)}`;
        throw errorAt('ERR_OVERLAP', { ...local.place, field: `${local.place.field}.offset` }, problem, {
          help: `If both are the same memory with the same content, declare "alias": ${JSON.stringify(other.place.tensor)}.`,
        });
      }
      open.push(local);
    }
  }
}

/** @throws ERR_MANIFEST when an alias is not the memory that it claims to be. */
export function requireAliases(tensors: readonly LocalTensor[]): void {
  for (const local of tensors) {
    const { alias } = local.tensor;
    if (alias === undefined) continue;
    const place = { ...local.place, field: `${local.place.field}.alias` };
    const target = tensors.find(({ tensor }) => tensor.name === alias);
    if (target === undefined || target.tensor.alias !== undefined) {
      throw errorAt(
        'ERR_MANIFEST',
        place,
        `${JSON.stringify(alias)} is no tensor of this rank, or an alias itself`,
      );
    }
    const memory = (x: LocalTensor): string =>
      JSON.stringify([x.allocation, x.offset, x.dtype, x.shape, x.strides]);
    if (memory(local) !== memory(target)) {
      const problem = `allocation, offset, dtype, shape and strides must be those of ${JSON.stringify(alias)}`;
      throw errorAt('ERR_MANIFEST', place, problem);
    }
  }
}
