// SPDX-License-Identifier: Apache-2.0
// The document by which a program tells what its ranks hold, or want, of which tensors: version 1 of the manifest format.

import { z } from 'zod';
import { manifestError } from './manifest-error.js';

/** In elements of each dimension. */
export interface ManifestBox {
  readonly start: readonly number[];
  readonly size: readonly number[];
}

/** Part of a local tensor, and what it is of a global one. */
export interface ManifestPiece {
  /** Name of the global tensor; both sides mean the same by it. */
  readonly source: string;
  readonly global: ManifestBox;
  /** Default: the whole local tensor. It may have further dimensions of size 1, as for one of several stacked experts. */
  readonly local?: ManifestBox | undefined;
}

export interface ManifestTensor {
  readonly name: string;
  /** As in safetensors (`BF16`, `F8_E4M3`) or as here (`bf16`, `f8e4m3`). */
  readonly dtype: string;
  /** Local extents. */
  readonly shape: readonly number[];
  /** Bytes from one element to the next per dimension; default dense and row-major. */
  readonly strides?: readonly number[] | undefined;
  /** Name of the allocation of this rank that has it; default one of its own, with its name. */
  readonly allocation?: string | undefined;
  /** Bytes from the first byte of the allocation; default 0. */
  readonly offset?: number | undefined;
  /** Another tensor of this rank that is the same memory with the same content, such as a tied head. */
  readonly alias?: string | undefined;
  /** May be left away for an alias. */
  readonly pieces?: readonly ManifestPiece[] | undefined;
}

export interface ManifestAllocation {
  readonly name: string;
  readonly bytes: number;
}

export interface ManifestRank {
  readonly rank: number;
  /** Allocations that several tensors share, or whose sizes are to be checked. */
  readonly allocations?: readonly ManifestAllocation[] | undefined;
  readonly tensors: readonly ManifestTensor[];
}

/** One side of a transfer, for all of its ranks. */
export interface Manifest {
  readonly format: 'nccl-ext.m2n.manifest';
  readonly version: 1;
  /** Ranks of this side, those that hold nothing included; default 1 + the highest rank. */
  readonly worldSize?: number | undefined;
  /** Extents of global tensors; default: as far as the boxes of both sides reach. */
  readonly globals?: Readonly<Record<string, readonly number[]>> | undefined;
  readonly ranks: readonly ManifestRank[];
}

const count = z.int().nonnegative();
const extents = z.array(count);
const name = z.string().min(1);
const box = z.strictObject({ start: extents, size: extents });

const piece = z.strictObject({
  source: name.describe('Name of the global tensor; both sides mean the same by it.'),
  global: box.describe('Which elements of the global tensor.'),
  local: box
    .optional()
    .describe('Which elements of the local tensor; default all. Further dimensions must have size 1.'),
});

const tensor = z.strictObject({
  name,
  dtype: name.describe('As in safetensors (BF16, F8_E4M3) or as in nccl-ext (bf16, f8e4m3).'),
  shape: extents.describe('Local extents.'),
  strides: extents.optional().describe('Bytes per dimension; default dense and row-major.'),
  allocation: name
    .optional()
    .describe('Allocation of this rank that has it; default one of its own, with its name.'),
  offset: count.optional().describe('Bytes from the first byte of the allocation; default 0.'),
  alias: name
    .optional()
    .describe('Another tensor of this rank that is the same memory with the same content.'),
  pieces: z.array(piece).optional().describe('What it consists of; may be left away for an alias.'),
});

const rank = z.strictObject({
  rank: count,
  allocations: z.array(z.strictObject({ name, bytes: count })).optional(),
  tensors: z.array(tensor),
});

const manifest = z.strictObject({
  format: z.literal('nccl-ext.m2n.manifest'),
  version: z.literal(1),
  worldSize: z.int().positive().optional().describe('Ranks of this side; default 1 + the highest rank.'),
  globals: z
    .record(z.string(), extents)
    .optional()
    .describe('Extents of global tensors; default as far as boxes reach.'),
  ranks: z.array(rank),
});

const manifestSchema: z.ZodType<Manifest> = manifest;

/** The JSON schema of a manifest, which `schemas/manifest.schema.json` holds. */
export function manifestJsonSchema(): Record<string, unknown> {
  return { title: 'nccl-ext M2N manifest', ...z.toJSONSchema(manifest) };
}

/**
 * Checks the form of a parsed manifest; `source` names it in errors. What the numbers mean is checked when it is used.
 *
 * @throws ERR_MANIFEST naming the field.
 */
export function parseManifest(json: unknown, source: string): Manifest {
  const result = manifestSchema.safeParse(json);
  if (result.success) return result.data;
  throw manifestError(`${source}: ${z.prettifyError(result.error)}`, { field: source });
}
