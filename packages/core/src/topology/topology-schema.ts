// SPDX-License-Identifier: Apache-2.0
// The form in which people and files describe a topology, and the zod schema that reads it.

import * as z from 'zod';
import { type Link, type LinkClass, linkClasses } from './link.js';

/** Where a rank is. All numbers are ids counted from 0. */
export interface RankPlace {
  /** The host. */
  readonly node: number;
  /** The NVLink domain, numbered over the whole topology; it may span nodes, and a node may hold several. */
  readonly domain: number;
  /** The NIC rail, the same number on every node for NICs behind the same switch. */
  readonly rail: number;
  /** The GPU within its node; ranks with equal node and device share a GPU. */
  readonly device: number;
}

/** A topology as plain data; `packages/core/schemas/topology.schema.json` is its JSON schema. */
export interface TopologyDescription {
  /** Lets editors find the JSON schema; ignored. */
  readonly $schema?: string | undefined;
  /** Rank 0 first. */
  readonly ranks: readonly RankPlace[];
  /** Classes left out have the figures of an H100 SXM system. */
  readonly links?: { readonly [C in LinkClass]?: Link | undefined } | undefined;
}

const id = z.int().min(0).max(0x7fff_ffff);

const place: z.ZodType<RankPlace> = z.strictObject({
  node: id.describe('Host, counted from 0'),
  domain: id.describe('NVLink domain, numbered over the whole topology'),
  rail: id.describe('NIC rail'),
  device: id.describe('GPU within its node; ranks with equal node and device share it'),
});

const link: z.ZodType<Link> = z.strictObject({
  bandwidthGBps: z.number().positive().describe('10^9 bytes per second, per rank and direction'),
  latencyUs: z.number().min(0).describe('Microseconds until the first byte arrives'),
});

export const topologySchema: z.ZodType<TopologyDescription> = z.strictObject({
  $schema: z.string().optional(),
  ranks: z.array(place).min(1).describe('One entry per rank, rank 0 first'),
  links: z
    .partialRecord(z.enum(linkClasses), link)
    .optional()
    .describe('Figures per class of link; classes left out have those of an H100 SXM system'),
});

/** The text of `packages/core/schemas/topology.schema.json`. */
export function topologyJsonSchema(): string {
  const schema = z.toJSONSchema(topologySchema, { io: 'input' });
  return `${JSON.stringify({ title: 'nccl-ext topology', ...schema }, null, 2)}\n`;
}
