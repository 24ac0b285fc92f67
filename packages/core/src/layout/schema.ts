// SPDX-License-Identifier: Apache-2.0
// Reads meshes and layouts from JSON documents, with messages that name the entry at fault.

import { z } from 'zod';
import { type DType, dtypes } from '../dtype/dtype.js';
import type { ErrorCode } from '../errors/codes.js';
import { NcclExtError } from '../errors/nccl-ext-error.js';
import { type DeviceMesh, type MeshJSON, meshFromAxes } from '../mesh/device-mesh.js';
import { type Layout, layout } from './layout.js';
import type { Placement, Split } from './placement.js';

/** A layout as documents write it. */
export interface LayoutDocument {
  readonly shape: readonly number[];
  readonly dtype: DType;
  readonly mesh: MeshJSON;
  readonly placements: readonly Placement[] | Readonly<Record<string, Placement>>;
}

const integer = z.int();
const list = z.array(integer);

/** A split; the names `"even"` and `"chunk"` stand for themselves. */
const splitSchema: z.ZodType<Split> = z.preprocess(
  (value) => (value === 'even' || value === 'chunk' ? { kind: value } : value),
  z.discriminatedUnion('kind', [
    z.strictObject({ kind: z.literal('even') }),
    z.strictObject({ kind: z.literal('chunk') }),
    z.strictObject({ kind: z.literal('sizes'), sizes: list }),
    z.strictObject({ kind: z.literal('ranges'), ranges: z.array(z.tuple([integer, integer])) }),
    z.strictObject({ kind: z.literal('strided'), groups: integer }),
    z.strictObject({ kind: z.literal('interleaved'), segments: list }),
    z.strictObject({ kind: z.literal('blockCyclic'), block: integer }),
  ]),
);

/** A placement; `split` defaults to chunk. */
const placementSchema: z.ZodType<Placement> = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('replicate') }),
  z.strictObject({ kind: z.literal('shard'), dim: integer, split: splitSchema.default({ kind: 'chunk' }) }),
]);

/** A mesh: `{"axes": {"dp": 2, "tp": 4}, "startRank": 8}` or with `"ranks": [...]`. */
const meshSchema: z.ZodType<MeshJSON> = z.strictObject({
  axes: listOr(
    z.array(z.strictObject({ name: z.string(), size: integer })),
    z.record(z.string(), integer),
  ).transform((axes) =>
    Array.isArray(axes) ? axes : Object.entries(axes).map(([name, size]) => ({ name, size })),
  ),
  startRank: integer.exactOptional(),
  ranks: list.exactOptional(),
});

/** A layout: shape, dtype, mesh, and placements as a list (one per axis) or by axis name. */
const layoutSchema: z.ZodType<LayoutDocument> = z.strictObject({
  shape: list,
  dtype: z.enum(dtypes),
  mesh: meshSchema,
  placements: listOr(z.array(placementSchema), z.record(z.string(), placementSchema)),
});

/**
 * The mesh that a parsed JSON value describes; the inverse of `DeviceMesh.toJSON`.
 *
 * @throws ERR_MESH with the entry at fault.
 * @example
 * ```ts
 * meshFromJSON({ axes: { dp: 2, tp: 4 }, startRank: 8 }).ranks; // [8, ..., 15]
 * ```
 */
export function meshFromJSON(json: unknown): DeviceMesh {
  return toMesh(parse(meshSchema, json, 'ERR_MESH', 'mesh'));
}

/**
 * The layout that a parsed JSON value describes; the inverse of `Layout.toJSON`.
 *
 * @throws ERR_LAYOUT (ERR_MESH for what is wrong in its mesh) with the entry at fault.
 */
export function layoutFromJSON(json: unknown): Layout {
  const document = parse(layoutSchema, json, 'ERR_LAYOUT', 'layout');
  return layout({ ...document, mesh: toMesh(document.mesh) });
}

function toMesh({ axes, ...options }: MeshJSON): DeviceMesh {
  return meshFromAxes(axes, options);
}

function parse<T>(schema: z.ZodType<T>, json: unknown, code: ErrorCode, field: string): T {
  const result = schema.safeParse(json);
  if (result.success) return result.data;
  throw new NcclExtError(code, `${field} is malformed:\n${z.prettifyError(result.error)}`, { field });
}

/** A union that reports the errors of the form that was meant, where z.union would only say "invalid input". */
function listOr<L, R>(whenArray: z.ZodType<L>, otherwise: z.ZodType<R>): z.ZodType<L | R> {
  return z.unknown().transform((value, context) => {
    const result = (Array.isArray(value) ? whenArray : otherwise).safeParse(value);
    if (result.success) return result.data as L | R;
    for (const { message, path } of result.error.issues)
      context.issues.push({ code: 'custom', message, path, input: value });
    return z.NEVER;
  });
}
