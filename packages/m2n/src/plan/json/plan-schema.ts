// SPDX-License-Identifier: Apache-2.0
// Checks the envelope of a stored plan, and describes the whole document as JSON schema. Columns of moves are only checked to be arrays here; read-moves.ts reads them.

import { type DType, dtypes } from '@nccl-ext/core';
import * as z from 'zod';
import { moveColumns, planFormat, planFormatVersion } from './plan-document.js';

/** The document as far as the schema has checked it. */
export interface PlanEnvelope {
  readonly $schema?: string | undefined;
  readonly format: typeof planFormat;
  readonly version: typeof planFormatVersion;
  readonly digest: string;
  readonly worldSize: number;
  readonly totals: Readonly<Record<string, unknown>>;
  readonly patterns: readonly {
    readonly dtype: DType;
    readonly shape: readonly number[];
    readonly parts: readonly {
      readonly dims: readonly (readonly (readonly number[])[])[];
      readonly ranks: readonly unknown[];
      readonly byteOffset: number;
      readonly byteStrides: readonly number[];
    }[];
  }[];
  readonly tensors: readonly unknown[];
  readonly programs: readonly {
    readonly rank: number;
    readonly receivePeers: readonly unknown[];
    readonly forwardPeers: readonly unknown[];
    readonly sends: Readonly<Record<string, readonly unknown[]>>;
  }[];
}

const count = z.int().min(0);

/** An array of data: long, so its elements are checked by loops. */
function column(items: Record<string, unknown>, description: string): z.ZodType<readonly unknown[]> {
  const message = 'Invalid input: expected an array';
  return z
    .custom<readonly unknown[]>((value) => Array.isArray(value), message)
    .meta({ type: 'array', items, description });
}

const integers = { type: 'integer', minimum: 0 };

const part = z.strictObject({
  dims: z.array(z.array(z.tuple([count, z.int().min(1), z.int().min(1), z.int().min(1)]))),
  ranks: column(integers, 'Ranks that hold the part, ascending'),
  byteOffset: count,
  byteStrides: z.array(count),
});

const copy = {
  type: 'object',
  properties: { pattern: integers, storage: { type: 'string' } },
  required: ['pattern', 'storage'],
  additionalProperties: false,
};

const tensor = {
  type: 'object',
  properties: {
    name: { type: 'string' },
    slot: integers,
    source: { type: 'array', items: copy, minItems: 1 },
    destination: { type: 'array', items: copy, minItems: 1 },
  },
  required: ['name', 'slot', 'source', 'destination'],
  additionalProperties: false,
};

const moves = z.strictObject(
  Object.fromEntries(
    Object.entries(moveColumns).map(([name, perMove]) => [
      name,
      column(
        integers,
        perMove === 1 ? 'One entry per move' : `${perMove} entries per move, outermost loop first`,
      ),
    ]),
  ),
);

export const planSchema: z.ZodType<PlanEnvelope> = z.strictObject({
  $schema: z.string().optional(),
  format: z.literal(planFormat),
  version: z.literal(planFormatVersion),
  digest: z.string().regex(/^[0-9a-f]{64}$/),
  worldSize: z.int().min(1),
  totals: z.record(z.string(), z.unknown()),
  patterns: z.array(z.strictObject({ dtype: z.enum(dtypes), shape: z.array(count), parts: z.array(part) })),
  tensors: column(tensor, 'The tensor list; moves name entries by index'),
  programs: z.array(
    z.strictObject({
      rank: count,
      receivePeers: column(integers, 'Ranks that send to this one in stage 0, ascending'),
      forwardPeers: column(integers, 'Ranks that forward to this one in stage 1, ascending'),
      sends: moves,
    }),
  ),
});

/** The text of `packages/m2n/schemas/plan.schema.json`. */
export function planJsonSchema(): string {
  const schema = z.toJSONSchema(planSchema, { io: 'input', unrepresentable: 'any' });
  return `${JSON.stringify({ title: 'nccl-ext m2n plan', ...schema }, null, 2)}\n`;
}
