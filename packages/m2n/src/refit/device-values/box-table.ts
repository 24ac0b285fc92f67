// SPDX-License-Identifier: Apache-2.0
// The table that a kernel of values reads: a rank's memory as structs of native/values/shared/value_box.hpp, cut into tiles of work.

import { type DType, dtypeBytes } from '@nccl-ext/core';
import { dtypeCode } from '@nccl-ext/core/extend';
import type { Part } from '../../plan/side-pattern.js';
import type { StorageArena } from '../storage-arena.js';
import type { GeneratedTensor } from '../values.js';
import { boxLoops, type ValueBox, valueBoxes } from './value-boxes.js';

/** Of 4 bytes, in a box. */
const boxWords = 34;
/** Of a tile, at most: enough work for a warp to make up for finding it. */
const tileBytes = 65_536;

/** Boxes of one rank's side. */
export interface BoxTable {
  readonly bytes: Uint8Array;
  readonly boxes: number;
  readonly tiles: number;
}

/** `generated` tells what the values of a tensor are made from; the memory holds them in the dtypes of `arena`. */
export function boxTable(
  arena: Pick<StorageArena, 'held' | 'bindings'>,
  generated: (tensor: string) => GeneratedTensor,
): BoxTable {
  const known = new Map<Part, readonly ValueBox[]>();
  const rows: Row[] = [];
  for (const { name, storage, dtype, parts } of arena.held) {
    const tensor = generated(name);
    const base = arena.bindings[storage]!.byteOffset ?? 0;
    for (const part of parts) {
      // Tensors that lie the same way share their parts.
      const boxes = known.get(part) ?? valueBoxes(part, tensor.shape, dtype);
      known.set(part, boxes);
      for (const box of boxes) rows.push({ box, base, tensor, dtype });
    }
  }
  const words = new Uint32Array(rows.length * boxWords);
  let tiles = 0;
  for (const [index, row] of rows.entries()) {
    const cut = cutRuns(row);
    writeBox(words, index * boxWords, row, tiles, cut);
    tiles += cut.tiles;
  }
  return { bytes: new Uint8Array(words.buffer), boxes: rows.length, tiles };
}

interface Row {
  readonly box: ValueBox;
  /** Byte of the memory at which the storage starts. */
  readonly base: number;
  readonly tensor: GeneratedTensor;
  readonly dtype: DType;
}

interface TileCut {
  readonly segment: number;
  readonly rows: number;
  readonly tiles: number;
}

/** Long runs are cut into tiles, short ones share a tile. */
function cutRuns({ box: { inner, loops }, dtype }: Row): TileCut {
  const bytes = inner * dtypeBytes(dtype);
  const runs = loops.reduce((product, { count }) => product * count, 1);
  if (bytes >= tileBytes) {
    const segment = tileBytes / dtypeBytes(dtype);
    return { segment, rows: 1, tiles: runs * Math.ceil(inner / segment) };
  }
  const rows = Math.floor(tileBytes / bytes);
  return { segment: inner, rows, tiles: Math.ceil(runs / rows) };
}

/** Fields in their order; a GPU's machine and its host are little-endian. */
function writeBox(words: Uint32Array, at: number, row: Row, firstTile: number, cut: TileCut): void {
  const { box, base, tensor, dtype } = row;
  let next = at;
  const long = (value: number): void => {
    words[next++] = value;
    words[next++] = value / 2 ** 32;
  };
  long(base + box.local);
  long(box.element);
  long(box.inner);
  const unused = boxLoops - box.loops.length;
  for (let k = 0; k < boxLoops; k++) long(k < unused ? 1 : box.loops[k - unused]!.count);
  for (let k = 0; k < boxLoops; k++) long(k < unused ? 0 : box.loops[k - unused]!.local);
  for (let k = 0; k < boxLoops; k++) long(k < unused ? 0 : box.loops[k - unused]!.element);
  long(firstTile);
  long(cut.segment);
  words[next++] = cut.rows;
  words[next++] = tensor.seed;
  words[next++] = tensor.masks[0];
  words[next++] = tensor.masks[1];
  words[next++] = dtypeCode(tensor.dtype);
  words[next++] = dtypeCode(dtype);
}
