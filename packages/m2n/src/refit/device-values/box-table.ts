// SPDX-License-Identifier: Apache-2.0
// The table that a kernel of values reads: a rank's memory as structs of native/values/shared/value_box.hpp, cut into tiles of work.

import { type DType, dtypeBytes } from '@nccl-ext/core';
import { dtypeCode } from '@nccl-ext/core/extend';
import type { Part } from '../../plan/side-pattern.js';
import type { StorageArena } from '../storage-arena.js';
import type { GeneratedTensor } from '../values.js';
import { boxLoops, type ValueBox, valueBoxes } from './value-boxes.js';

const boxBytes = 136;
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
  const view = new DataView(new ArrayBuffer(rows.length * boxBytes));
  let tiles = 0;
  for (const [index, row] of rows.entries()) {
    const cut = cutRuns(row);
    writeBox(view, index * boxBytes, row, tiles, cut);
    tiles += cut.tiles;
  }
  return { bytes: new Uint8Array(view.buffer), boxes: rows.length, tiles };
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

function writeBox(view: DataView, at: number, row: Row, firstTile: number, cut: TileCut): void {
  const { box, base, tensor, dtype } = row;
  const loops = [
    ...Array.from({ length: boxLoops - box.loops.length }, () => ({ count: 1, local: 0, element: 0 })),
    ...box.loops,
  ];
  const longs = [
    base + box.local,
    box.element,
    box.inner,
    ...loops.map(({ count }) => count),
    ...loops.map(({ local }) => local),
    ...loops.map(({ element }) => element),
    firstTile,
    cut.segment,
  ];
  const words = [cut.rows, tensor.seed, ...tensor.masks, dtypeCode(tensor.dtype), dtypeCode(dtype)];
  for (const [i, long] of longs.entries()) view.setBigUint64(at + 8 * i, BigInt(long), true);
  for (const [i, word] of words.entries()) view.setUint32(at + 8 * longs.length + 4 * i, word, true);
}
