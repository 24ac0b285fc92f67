// SPDX-License-Identifier: Apache-2.0
// Says what one mesh axis does to a tensor: every coordinate holds all of it, or one dimension is split among the coordinates.

import { NcclExtError } from '../errors/nccl-ext-error.js';
import { describe, requireInteger } from '../mesh/require-integer.js';

/**
 * How the coordinates of one mesh axis share the extent of one dimension. The extent is what earlier axes left on this
 * rank. Every split keeps the order of elements, so local order is global order.
 */
export type Split =
  /** Equal shards; a remainder is an error. */
  | { readonly kind: 'even' }
  /** As torch.chunk: shards of ceil(extent / n); trailing ones may be short or empty. */
  | { readonly kind: 'chunk' }
  /** One size per coordinate; they sum to the extent, zeros allowed. */
  | { readonly kind: 'sizes'; readonly sizes: readonly number[] }
  /** One half-open range per coordinate; ranges may overlap or leave gaps. */
  | { readonly kind: 'ranges'; readonly ranges: readonly (readonly [start: number, end: number])[] }
  /** `groups` equal segments, each chunked by itself; local order is segment order. */
  | { readonly kind: 'strided'; readonly groups: number }
  /** Segments of these lengths, which sum to the extent, each chunked by itself; local order is segment order. */
  | { readonly kind: 'interleaved'; readonly segments: readonly number[] }
  /** Block i goes to coordinate i mod n; the last block may be short. */
  | { readonly kind: 'blockCyclic'; readonly block: number };

/** What one mesh axis does to a tensor. A negative `dim` counts from the end: -1 is the last dimension. */
export type Placement =
  | { readonly kind: 'replicate' }
  | { readonly kind: 'shard'; readonly dim: number; readonly split: Split };

/** The names of the splits, in the order of {@link Split}. */
const splitKinds: readonly Split['kind'][] = [
  'even',
  'chunk',
  'sizes',
  'ranges',
  'strided',
  'interleaved',
  'blockCyclic',
];

const replicated: Placement = Object.freeze({ kind: 'replicate' });
const even: Split = Object.freeze({ kind: 'even' });
const chunk: Split = Object.freeze({ kind: 'chunk' });

/** Splits that were checked, copied and frozen here; layouts of a whole model need not check them again. */
const checked = new WeakSet<Split>([even, chunk]);

/** Every coordinate of the axis holds everything. */
export function replicate(): Placement {
  return replicated;
}

/**
 * The coordinates of the axis split dimension `dim`; negative counts from the end (-1 is the last). The default split
 * is `'chunk'`, as torch.chunk: 10 over 4 is 3, 3, 3, 1.
 *
 * @throws ERR_LAYOUT when `dim` is no integer or the split is malformed.
 * @example
 * ```ts
 * layout({ shape: [4096, 1024], dtype: 'bf16', mesh: mesh({ tp: 4 }), placements: { tp: shard(0, 'even') } });
 * ```
 */
export function shard(dim: number, split: 'even' | 'chunk' | Split = chunk): Placement {
  requireInteger('ERR_LAYOUT', 'dim', dim, Number.MIN_SAFE_INTEGER);
  return Object.freeze({ kind: 'shard', dim, split: normaliseSplit(split, 'split') });
}

/** One size per coordinate. `shard(0, sizes([5, 0, 3]))`. */
export function sizes(list: readonly number[]): Split {
  return normaliseSplit({ kind: 'sizes', sizes: list }, 'split');
}

/** One half-open range per coordinate; may overlap (two KV heads on four ranks) or leave gaps. `shard(0, ranges([[0, 64], [0, 64]]))`. */
export function ranges(list: readonly (readonly [start: number, end: number])[]): Split {
  return normaliseSplit({ kind: 'ranges', ranges: list }, 'split');
}

/** `groups` equal segments, each chunked by itself: gate-up fused in one tensor is `shard(0, strided(2))`. */
export function strided(groups: number): Split {
  return normaliseSplit({ kind: 'strided', groups }, 'split');
}

/** Segments of given lengths, each chunked by itself: fused qkv is `shard(0, interleaved([q, k, v]))`. */
export function interleaved(segments: readonly number[]): Split {
  return normaliseSplit({ kind: 'interleaved', segments }, 'split');
}

/** Block i goes to coordinate i mod n. `shard(0, blockCyclic(64))`. */
export function blockCyclic(block: number): Split {
  return normaliseSplit({ kind: 'blockCyclic', block }, 'split');
}

/** A frozen copy of a well-formed split; shapes and axis sizes are checked by the layout. `field` names it in errors. */
export function normaliseSplit(split: 'even' | 'chunk' | Split, field: string): Split {
  if (split === 'even') return even;
  if (split === 'chunk') return chunk;
  if (typeof split !== 'object' || split === null) throw unknownSplit(split, field);
  if (checked.has(split)) return split;
  const copy = Object.freeze(copySplit(split, field));
  checked.add(copy);
  return copy;
}

function copySplit(split: Split, field: string): Split {
  switch (split.kind) {
    case 'even':
      return even;
    case 'chunk':
      return chunk;
    case 'sizes':
      return { kind: 'sizes', sizes: lengths(split.sizes, `${field}.sizes`) };
    case 'interleaved':
      return { kind: 'interleaved', segments: lengths(split.segments, `${field}.segments`) };
    case 'strided':
      return { kind: 'strided', groups: requireInteger('ERR_LAYOUT', `${field}.groups`, split.groups, 1) };
    case 'blockCyclic':
      return { kind: 'blockCyclic', block: requireInteger('ERR_LAYOUT', `${field}.block`, split.block, 1) };
    case 'ranges':
      return { kind: 'ranges', ranges: rangeList(split.ranges, `${field}.ranges`) };
    default:
      throw unknownSplit((split as { kind?: unknown }).kind, `${field}.kind`);
  }
}

function lengths(list: readonly number[], field: string): readonly number[] {
  requireArray(list, field);
  return Object.freeze(
    Array.from(list, (value, i) => requireInteger('ERR_LAYOUT', `${field}[${i}]`, value, 0)),
  );
}

function rangeList(
  list: readonly (readonly [number, number])[],
  field: string,
): readonly (readonly [number, number])[] {
  requireArray(list, field);
  return Object.freeze(
    Array.from(list, (range, i) => {
      requireArray(range, `${field}[${i}]`);
      const { length }: { readonly length: number } = range;
      if (length !== 2) throw layoutError(`${field}[${i}]`, `must be [start, end], got ${length} numbers`);
      const start = requireInteger('ERR_LAYOUT', `${field}[${i}][0] (start)`, range[0], 0);
      const end = requireInteger('ERR_LAYOUT', `${field}[${i}][1] (end)`, range[1], 0);
      if (end < start)
        throw layoutError(`${field}[${i}]`, `must not end before it starts: [${start}, ${end})`);
      return Object.freeze([start, end] as const);
    }),
  );
}

function requireArray(value: unknown, field: string): void {
  if (!Array.isArray(value)) throw layoutError(field, `must be an array, got ${describe(value)}`);
}

function unknownSplit(seen: unknown, field: string): NcclExtError {
  return layoutError(field, `must be one of ${splitKinds.join(', ')}, got ${describe(seen)}`);
}

function layoutError(field: string, message: string): NcclExtError {
  return new NcclExtError('ERR_LAYOUT', `${field} ${message}`, { field });
}
