// SPDX-License-Identifier: Apache-2.0
// All local tensors of one side on one rank in one buffer, with guard bytes between them that nobody may write.

import { dtypeBytes } from '@nccl-ext/core';
import type { SideSpec, StoredSpec, TensorSpec } from '../cases/case.js';
import { type DTypePair, type SideName, writeElements } from '../oracle/element-values.js';
import { heldIntervals, type Interval } from '../oracle/held-intervals.js';
import { Shard } from '../oracle/shard.js';

/** Bytes on both sides of every tensor. */
export const guardBytes = 64;

/** A local tensor in an image. */
export interface Slot {
  /** Index of the tensor in its case. */
  readonly tensor: number;
  /** 0, or the number of a further copy. */
  readonly copy: number;
  readonly shard: Shard;
  readonly dtypes: DTypePair;
  /** What is bound to reach it, and where that starts. */
  readonly storage: string;
  readonly storageOffset: number;
  /** Of the first element, in the image. */
  readonly byteOffset: number;
  /** From the first to the last element. */
  readonly bytes: number;
  /** Bytes of a row, and from one row to the next. */
  readonly rowBytes: number;
  readonly pitchBytes: number;
}

/** The buffer of one side on one rank. */
export interface Image {
  readonly side: SideName;
  readonly rank: number;
  readonly bytes: number;
  /** Ascending. */
  readonly slots: readonly Slot[];
  /** Equal for images with equal content. */
  readonly key: string;
}

/** What is in an image: the values of an epoch, and the byte that fills everything else. */
export interface Content {
  readonly epoch: number;
  readonly pass: number;
  /** Of the guards. */
  readonly guard: number;
}

/** The image of `rank`, empty when it holds nothing on that side. */
export function imageOf(tensors: readonly TensorSpec[], side: SideName, rank: number): Image {
  const slots: Slot[] = [];
  let end = 0;
  for (const members of storagesOf(tensors, side, rank)) {
    const { offset = 0 } = storedOf(members[0]!.spec, side);
    const size = dtypeBytes(dtypesOf(members[0]!.spec)[side]);
    // 16 is the strongest alignment that a copy may use.
    const storageOffset = Math.ceil((end + guardBytes) / 16) * 16 + offset * size;
    end = storageOffset;
    for (const { tensor, copy, spec, storage, held } of members) {
      const dtypes = dtypesOf(spec);
      const shard = new Shard(spec.shape, held);
      const rowBytes = (shard.shape.at(-1) ?? 1) * size;
      const pitchBytes = rowBytes + (storedOf(spec, side).padding ?? 0) * size;
      const rows = rowBytes === 0 ? 0 : (shard.elements * size) / rowBytes;
      const bytes = rows === 0 ? 0 : (rows - 1) * pitchBytes + rowBytes;
      slots.push({
        tensor,
        copy,
        shard,
        dtypes,
        storage,
        storageOffset,
        byteOffset: end,
        bytes,
        rowBytes,
        pitchBytes,
      });
      end += bytes;
    }
  }
  const key = slots
    .map(({ tensor, byteOffset, pitchBytes, shard }) => `${tensor}@${byteOffset}/${pitchBytes}:${shard.key}`)
    .join('|');
  return { side, rank, slots, bytes: slots.length === 0 ? 0 : Math.ceil((end + guardBytes) / 16) * 16, key };
}

/** Where a side keeps a tensor, the first place first. */
export function placesOf(spec: TensorSpec, side: SideName): readonly SideSpec[] {
  return [spec[side], ...(storedOf(spec, side).copies ?? [])];
}

/** How a side stores a tensor. */
export function storedOf(spec: TensorSpec, side: SideName): StoredSpec {
  return (side === 'source' ? spec.sourceStored : spec.destinationStored) ?? {};
}

/** Name of the storage of a copy. */
export function storageName(spec: TensorSpec, tensor: number, side: SideName, copy: number): string {
  if (copy > 0) return `t${tensor} copy ${copy}`;
  return storedOf(spec, side).fusedIn ?? `t${tensor}`;
}

/** A tensor that a rank holds. */
interface Member {
  readonly tensor: number;
  readonly copy: number;
  readonly spec: TensorSpec;
  readonly storage: string;
  readonly held: readonly (readonly Interval[])[];
}

/** What a rank holds, storage by storage. */
function storagesOf(tensors: readonly TensorSpec[], side: SideName, rank: number): readonly Member[][] {
  const byName = new Map<string, Member[]>();
  tensors.forEach((spec, tensor) => {
    placesOf(spec, side).forEach((place, copy) => {
      const held = heldIntervals(spec.shape, place, rank);
      if (held === undefined) return;
      const storage = storageName(spec, tensor, side, copy);
      byName.set(storage, [...(byName.get(storage) ?? []), { tensor, copy, spec, storage, held }]);
    });
  });
  return [...byName.values()];
}

/** Its dtypes before and after. */
export function dtypesOf({ dtype, castTo }: TensorSpec): DTypePair {
  return { source: dtype, destination: castTo ?? dtype };
}

/** Bytes [from, from + out.byteLength) of an image as they must be; `from` is a multiple of 8 and `out` starts at one. */
export function renderImage(out: Uint8Array, image: Image, from: number, content: Content): void {
  out.fill(content.guard);
  for (const slot of image.slots) {
    const { byteOffset, bytes, rowBytes, pitchBytes } = slot;
    const start = Math.max(byteOffset, from);
    const end = Math.min(byteOffset + bytes, from + out.byteLength);
    if (start >= end) continue;
    if (rowBytes === pitchBytes) {
      renderElements(out.subarray(start - from, end - from), image.side, slot, start - byteOffset, content);
      continue;
    }
    for (
      let row = Math.floor((start - byteOffset) / pitchBytes);
      byteOffset + row * pitchBytes < end;
      row++
    ) {
      const rowStart = byteOffset + row * pitchBytes;
      const first = Math.max(rowStart, start);
      const last = Math.min(rowStart + rowBytes, end);
      if (first >= last) continue;
      const dense = row * rowBytes + first - rowStart;
      renderElements(out.subarray(first - from, last - from), image.side, slot, dense, content);
    }
  }
}

/** `denseOffset` is where `out` starts in the local tensor without padding. */
function renderElements(
  out: Uint8Array,
  side: SideName,
  { tensor, shard, dtypes }: Slot,
  denseOffset: number,
  { epoch, pass }: Content,
): void {
  writeElements(out, side, dtypes, { tensor, epoch, pass }, shard, denseOffset / dtypeBytes(dtypes[side]));
}
