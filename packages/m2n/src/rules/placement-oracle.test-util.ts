// SPDX-License-Identifier: Apache-2.0
// Which elements each rank holds, from the definitions, one rank and one element at a time.

import { dtypeBytes } from '@nccl-ext/core';
import type { ModelDescription } from '../model/model-description.js';
import type { Parameter } from '../model/parameter.js';
import type { Parallelism } from '../parallel/parallelism.js';
import type { SideStorage } from './side-storages.js';

/** Which of `parts` has unit `index` of `count` under torch.chunk. */
const chunkOwner = (index: number, count: number, parts: number) =>
  Math.floor(index / Math.ceil(count / parts));

/** Whether rank `t` of `parts` holds query head `head`. */
function holdsQuery(head: number, t: number, parts: number, heads: number, kvHeads: number): boolean {
  const keyValue = Math.floor(head / (heads / kvHeads));
  if (parts <= kvHeads) return chunkOwner(keyValue, kvHeads, parts) === t;
  const sharers = Array.from({ length: parts }, (_, r) => r).filter(
    (r) => Math.floor((r * kvHeads) / parts) === keyValue,
  );
  const within = head % (heads / kvHeads);
  return sharers[chunkOwner(within, heads / kvHeads, sharers.length)] === t;
}

function holdsKeyValue(head: number, t: number, parts: number, kvHeads: number): boolean {
  return parts <= kvHeads
    ? chunkOwner(head, kvHeads, parts) === t
    : Math.floor((t * kvHeads) / parts) === head;
}

/** Indices of the cut dimension of a weight that rank `t` of `parts` holds, and which dimension that is. */
function heldIndices(
  name: string,
  shape: readonly number[],
  t: number,
  parts: number,
  model: ModelDescription,
) {
  const all = (n: number) => Array.from({ length: n }, (_, i) => i);
  const { heads, kvHeads, quantBlock } = model.facts;
  const quantised = /proj/.test(name) && quantBlock !== undefined;
  const byChunk = (dim: number) => {
    const unit = quantised ? quantBlock[dim]! : 1;
    const units = Math.ceil(shape[dim]! / unit);
    return {
      dim,
      indices: all(shape[dim]!).filter((i) => chunkOwner(Math.floor(i / unit), units, parts) === t),
    };
  };
  const byHeads = (dim: number, count: number, holds: (head: number) => boolean) => ({
    dim,
    indices: all(shape[dim]!).filter((i) => holds(Math.floor(i / (shape[dim]! / count)))),
  });
  if (/embed_tokens|lm_head|\.(gate|up)_proj/.test(name)) return byChunk(0);
  if (/down_proj/.test(name)) return byChunk(1);
  if (/\.(q_proj|q_b_proj|kv_b_proj)/.test(name))
    return byHeads(0, heads!, (h) => holdsQuery(h, t, parts, heads!, kvHeads!));
  if (/\.[kv]_proj/.test(name)) return byHeads(0, kvHeads!, (h) => holdsKeyValue(h, t, parts, kvHeads!));
  if (/o_proj/.test(name)) return byHeads(1, heads!, (h) => holdsQuery(h, t, parts, heads!, kvHeads!));
  return undefined;
}

/** The global elements of a parameter that a rank holds, in its local order; undefined when it holds none. */
export function heldElements(
  parameter: Parameter,
  rank: number,
  p: Parallelism,
  model: ModelDescription,
): number[] | undefined {
  const { name, shape, layer, expert } = parameter;
  const stageRanks = p.dp * p.cp * p.tp;
  const stage = Math.floor(rank / stageRanks);
  const within = rank % stageRanks;
  const wanted =
    layer === undefined
      ? /embed/.test(name)
        ? 0
        : p.pp - 1
      : Math.floor((layer * p.pp) / model.facts.layers);
  if (stage !== wanted) return undefined;
  const group = Math.floor(within / p.etp) % p.ep;
  if (expert !== undefined && chunkOwner(expert, model.facts.experts, p.ep) !== group) return undefined;
  const [t, parts] = expert === undefined ? [within % p.tp, p.tp] : [within % p.etp, p.etp];
  const weightName = name.replace('_scale_inv', '');
  const weight = model.parameters.find((other) => other.name === weightName) ?? parameter;
  const held = heldIndices(name, weight.shape, t, parts, model);
  const indices = shape.map((extent, dim) => {
    if (held?.dim !== dim) return Array.from({ length: extent }, (_, i) => i);
    if (weightName === name) return held.indices;
    return [...new Set(held.indices.map((i) => Math.floor(i / model.facts.quantBlock![dim]!)))];
  });
  let elements = [0];
  for (const [dim, list] of indices.entries())
    elements = elements.flatMap((base) => list.map((i) => base * shape[dim]! + i));
  return elements.length === 0 ? undefined : elements;
}

/** The storages of a rank: for each its elements in order, as `parameter#element`. */
export function expectedStorages(
  rank: number,
  p: Parallelism,
  model: ModelDescription,
  view: string,
): Map<string, string[]> {
  const storages = new Map<string, string[]>();
  const add = (storage: string, parameter: Parameter) => {
    const elements = heldElements(parameter, rank, p, model);
    if (elements === undefined) return;
    const list = storages.get(storage) ?? [];
    for (const element of elements) list.push(`${parameter.name}#${element}`);
    storages.set(storage, list);
  };
  for (const parameter of model.parameters) {
    const { name } = parameter;
    let storage = name;
    if (view === 'vllm') {
      storage = name
        .replace(/experts\.\d+\.(gate|up)_proj\./, 'experts.w13_')
        .replace(/experts\.\d+\.down_proj\./, 'experts.w2_')
        .replace(/\.[qkv]_proj\./, '.qkv_proj.')
        .replace(/\.(gate|up)_proj\./, '.gate_up_proj.')
        .replace(/\.(q_a_proj|kv_a_proj_with_mqa)\./, '.fused_qkv_a_proj.');
    }
    add(storage, parameter);
  }
  return storages;
}

/** What a storage holds according to its pieces, element by element. */
export function contentOf(storage: SideStorage, model: ModelDescription): string[] {
  const content: string[] = [];
  for (const { name, part, byteOffset } of storage.pieces) {
    const { shape } = model.parameters.find((parameter) => parameter.name === name)!;
    const indices = part.dims.map(({ runs }) =>
      runs.flatMap(({ start, length, stride, count }) =>
        Array.from(
          { length: count * length },
          (_, i) => start + Math.floor(i / length) * stride + (i % length),
        ),
      ),
    );
    let cells: [element: number, byte: number][] = [[0, byteOffset]];
    for (const [dim, list] of indices.entries()) {
      cells = cells.flatMap(([element, byte]) =>
        list.map((index, i): [number, number] => [
          element * shape[dim]! + index,
          byte + i * part.byteStrides[dim]!,
        ]),
      );
    }
    for (const [element, byte] of cells) {
      const position = byte / dtypeBytes(storage.dtype);
      if (content[position] !== undefined) throw new Error(`two elements at byte ${byte}`);
      content[position] = `${name}#${element}`;
    }
  }
  return content;
}
