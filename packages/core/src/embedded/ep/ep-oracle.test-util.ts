// SPDX-License-Identifier: Apache-2.0
// A naive oracle of expert parallelism, one scalar at a time: rows by layout, and sums with the roundings that are promised.

import type { EpLayout } from '../../contract/index.js';
import { narrowBits, narrowFormats, widenBits } from '../../dtype/float-format.js';
import type { Shape } from './ep-world.test-util.js';

/** Ids and weights of one rank, [B, K]. */
export interface Routing {
  readonly tokens: number;
  readonly ids: Int32Array;
  readonly weights: Float32Array;
}

/** One (source, token, k) at a receiver. */
export interface Entry {
  readonly source: number;
  readonly token: number;
  readonly k: number;
  /** Local expert. */
  readonly local: number;
  readonly physical: number;
  readonly weight: number;
  row: number;
}

export interface Received {
  readonly entries: readonly Entry[];
  readonly rows: number;
  readonly demand: number;
  readonly perExpert: readonly number[];
  readonly firstRow: readonly number[];
  readonly perSource: readonly number[];
}

export interface Rules {
  readonly placement: readonly (readonly number[])[];
  readonly localFirst?: boolean;
  readonly active?: readonly number[];
  readonly budget?: number;
  readonly policy?: 'error' | 'drop-by-source' | 'drop-by-weight';
  readonly alignment?: number;
}

/** The physical expert of an entry, -1 when it is not routed. */
function physicalOf(rules: Rules, source: number, token: number, id: number): number {
  if (id < 0) return -1;
  const replicas: { physical: number; rank: number }[] = [];
  let physical = 0;
  for (const [rank, experts] of rules.placement.entries())
    for (const expert of experts) {
      if (expert === id && (rules.active?.[rank] ?? 1) === 1) replicas.push({ physical, rank });
      physical++;
    }
  const own = rules.localFirst ? replicas.find(({ rank }) => rank === source) : undefined;
  return (own ?? replicas[(source + token) % replicas.length])?.physical ?? -1;
}

export function receive(
  shape: Shape,
  layout: EpLayout,
  rules: Rules,
  routings: readonly Routing[],
  rank: number,
): Received {
  const first = rules.placement.slice(0, rank).reduce((sum, list) => sum + list.length, 0);
  const local = rules.placement[rank]!.length;
  let entries: Entry[] = [];
  for (const [source, { tokens, ids, weights }] of routings.entries()) {
    if (rules.active !== undefined && rules.active[source] !== 1) continue;
    for (let token = 0; token < tokens; token++)
      for (let k = 0; k < shape.topK; k++) {
        const at = token * shape.topK + k;
        const physical = physicalOf(rules, source, token, ids[at]!);
        if (physical < first || physical >= first + local) continue;
        entries.push({ source, token, k, local: physical - first, physical, weight: weights[at]!, row: -1 });
      }
  }
  const alignment = rules.alignment ?? 1;
  const pad = (rows: number): number => Math.ceil(rows / alignment) * alignment;
  const zones = (list: readonly Entry[]): number[] =>
    Array.from({ length: local }, (_, expert) => list.filter((entry) => entry.local === expert).length);
  const tokensOf = (list: readonly Entry[]): Entry[][] => {
    const rows: Entry[][] = [];
    for (const entry of list) {
      const last = rows.at(-1)?.[0];
      if (last?.source === entry.source && last.token === entry.token) rows.at(-1)!.push(entry);
      else rows.push([entry]);
    }
    return rows;
  };
  const total = (list: readonly Entry[]): number =>
    layout === 'packed' ? zones(list).reduce((sum, rows) => sum + pad(rows), 0) : tokensOf(list).length;
  const budgeted = layout === 'flat' || layout === 'packed';
  const demand = layout === 'expert-major' ? entries.length : total(entries);
  if (budgeted && (rules.budget ?? 0) > 0 && demand > rules.budget! && rules.policy !== 'error') {
    const units = layout === 'packed' ? entries.map((entry) => [entry]) : tokensOf(entries);
    const largest = (unit: readonly Entry[]): number => Math.max(...unit.map((entry) => entry.weight));
    if (rules.policy === 'drop-by-weight') units.sort((a, b) => largest(b) - largest(a));
    const kept: Entry[] = [];
    for (const unit of units) {
      const grown = [...kept, ...unit].sort((a, b) => a.source - b.source || a.token - b.token || a.k - b.k);
      if (total(grown) > rules.budget!) break;
      kept.push(...unit);
    }
    entries = kept.sort((a, b) => a.source - b.source || a.token - b.token || a.k - b.k);
  }
  const perExpert = zones(entries);
  const firstRow = new Array<number>(local).fill(0);
  const perSource = routings.map(
    (_, source) =>
      (layout === 'expert-major' || layout === 'packed'
        ? entries.map((entry) => [entry])
        : tokensOf(entries)
      ).filter((unit) => unit[0]!.source === source).length,
  );
  let rows = 0;
  if (layout === 'expert-major' || layout === 'packed') {
    for (let expert = 0; expert < local; expert++) {
      firstRow[expert] = layout === 'packed' ? rows : expert * shape.ranks * shape.maxTokens;
      rows += pad(perExpert[expert]!);
    }
    const next = firstRow.slice();
    for (const entry of entries) entry.row = next[entry.local]!++;
  } else {
    const units = tokensOf(entries);
    const next = routings.map((_, source) => source * shape.maxTokens);
    for (const unit of units) {
      const row = layout === 'flat' ? rows : next[unit[0]!.source]!++;
      for (const entry of unit) entry.row = row;
      rows++;
    }
  }
  return { entries, rows, demand, perExpert, firstRow, perSource };
}

const f = Math.fround;
const bits = new Int32Array(1);
const float = new Float32Array(bits.buffer);

/** Elements of bytes as f32. */
export function decode(dtype: Shape['dtype'], bytes: Uint8Array): Float32Array {
  if (dtype === 'f32') return new Float32Array(bytes.slice().buffer);
  return Float32Array.from(new Uint16Array(bytes.slice().buffer), (pattern) => {
    bits[0] = widenBits(pattern, narrowFormats[dtype]);
    return float[0]!;
  });
}

export function encode(dtype: Shape['dtype'], values: Float32Array): Uint8Array {
  const words = new Int32Array(values.buffer, values.byteOffset, values.length);
  if (dtype === 'f32')
    return new Uint8Array(
      Int32Array.from(words, (w, i) => (Number.isNaN(values[i]) ? 0x7fffffff : w)).buffer,
    );
  return new Uint8Array(Uint16Array.from(words, (word) => narrowBits(word, narrowFormats[dtype])).buffer);
}

function roundTo(dtype: Shape['dtype'], value: number): number {
  return decode(dtype, encode(dtype, Float32Array.of(value)))[0]!;
}

/** What one rank adds: w and x of each entry, x [H]. */
export interface Term {
  readonly rank: number;
  readonly weight: number | undefined;
  readonly row: Float32Array;
}

/** One token of a combine: terms in top-k order. */
export function combineToken(
  shape: Shape,
  terms: readonly Term[],
  rule: { readonly byToken?: boolean; readonly payload: boolean; readonly fp8?: boolean },
): Uint8Array {
  const y = new Float32Array(shape.hidden);
  const ranks =
    rule.byToken && terms.length > 0
      ? [-1]
      : [...new Set(terms.map(({ rank }) => rank))].sort((a, b) => a - b);
  const sums = ranks.map((rank) => {
    const own = terms.filter((term) => rank < 0 || term.rank === rank);
    const inner = Float32Array.from({ length: shape.hidden }, (_, h) => {
      let sum: number | undefined;
      for (const { weight, row } of own) {
        const x = weight === undefined ? row[h]! : f(weight * row[h]!);
        sum = sum === undefined ? x : f(sum + x);
      }
      return sum!;
    });
    if (rule.fp8) return throughFp8(inner);
    return rule.payload && !rule.byToken ? inner.map((value) => roundTo(shape.dtype, value)) : inner;
  });
  for (let h = 0; h < shape.hidden; h++) {
    let sum: number | undefined;
    for (const inner of sums) sum = sum === undefined ? inner[h]! : f(sum + inner[h]!);
    y[h] = sum ?? 0;
  }
  return encode(shape.dtype, y);
}

function throughFp8(values: Float32Array): Float32Array {
  const { codes, scales } = quantise(values, 'fp8');
  return Float32Array.from(codes, (code, i) => f(fromFp8(code) * scales[Math.floor(i / 128)]!));
}

function fromFp8(code: number): number {
  bits[0] = widenBits(code, narrowFormats.f8e4m3);
  return float[0]!;
}

export interface Quantised {
  readonly codes: Uint8Array;
  /** The scale that elements were divided by. */
  readonly scales: readonly number[];
  /** As stored. */
  readonly bytes: Uint8Array;
}

export function quantise(values: Float32Array, recipe: 'fp8' | 'fp8-pow2' | 'mxfp8'): Quantised {
  const block = recipe === 'mxfp8' ? 32 : 128;
  const codes = new Uint8Array(values.length);
  const scales: number[] = [];
  for (let first = 0; first < values.length; first += block) {
    let amax = 0;
    for (const value of values.subarray(first, first + block))
      if (!Number.isNaN(value)) amax = Math.max(amax, Math.min(Math.abs(value), 3.4028234663852886e38));
    const scale = scaleOf(amax, recipe);
    scales.push(scale);
    for (let i = first; i < first + block; i++) {
      float[0] = f(values[i]! / scale);
      codes[i] = narrowBits(bits[0]!, narrowFormats.f8e4m3);
    }
  }
  const bytes =
    recipe === 'mxfp8'
      ? Uint8Array.from(scales, (scale) => Math.log2(scale) + 127)
      : new Uint8Array(Float32Array.from(scales).buffer);
  return { codes, scales, bytes };
}

function scaleOf(amax: number, recipe: 'fp8' | 'fp8-pow2' | 'mxfp8'): number {
  if (recipe === 'fp8') return f(amax / 448) || 1;
  if (recipe === 'fp8-pow2') {
    if (amax === 0) return 1;
    let power = 2 ** -149;
    while (power * 448 < amax) power *= 2;
    return power;
  }
  if (amax === 0) return 2 ** -127;
  let exponent = -149;
  while (2 ** (exponent + 1) <= amax) exponent++;
  return 2 ** Math.max(-127, Math.min(127, exponent - 8));
}
