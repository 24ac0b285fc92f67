// SPDX-License-Identifier: Apache-2.0
// Turns the first byte that differs into a sentence that says whose element it is.

import { dtypeBytes } from '@nccl-ext/core';
import type { Image, Slot } from './image.js';

/** What is wrong in bytes [from, from + seen.byteLength) of an image, or undefined when nothing is. */
export function findDifference(
  image: Image,
  from: number,
  expected: Uint8Array,
  seen: Uint8Array,
): string | undefined {
  if (Buffer.compare(bufferOf(expected), bufferOf(seen)) === 0) return undefined;
  const at = expected.findIndex((byte, i) => byte !== seen[i]);
  const position = from + at;
  const slot = image.slots.find(
    ({ byteOffset, bytes }) => position >= byteOffset && position < byteOffset + bytes,
  );
  const where = `rank ${image.rank}, ${image.side}`;
  if (slot === undefined) {
    return `${where}: ${guardName(image, position)} was overwritten: byte ${position} is ${hex(seen.subarray(at, at + 1))}, was ${hex(expected.subarray(at, at + 1))}`;
  }
  const size = dtypeBytes(slot.dtypes[image.side]);
  const row = Math.floor((position - slot.byteOffset) / slot.pitchBytes);
  const column = position - slot.byteOffset - row * slot.pitchBytes;
  const tensor = `tensor ${slot.tensor}${slot.copy > 0 ? `, copy ${slot.copy}` : ''}`;
  if (column >= slot.rowBytes) {
    return `${where}, ${tensor}: the padding behind row ${row} was overwritten: byte ${position} is ${hex(seen.subarray(at, at + 1))}`;
  }
  const local = (row * slot.rowBytes) / size + Math.floor(column / size);
  const start = offsetOf(slot, size, local) - from;
  const wrong = countWrong(slot, size, from, expected, seen);
  return (
    `${where}, ${tensor} (${slot.dtypes[image.side]}): element [${slot.shard.globalIndexOf(local).join(', ')}], number ${local} of the local ` +
    `${slot.shard.shape.join(' x ') || 'scalar'}, is ${hex(seen.subarray(start, start + size))}, expected ${hex(expected.subarray(start, start + size))}; ` +
    `${wrong} of ${slot.shard.elements} elements differ`
  );
}

/** Of a local element, in the image. */
function offsetOf({ byteOffset, rowBytes, pitchBytes }: Slot, size: number, local: number): number {
  const dense = local * size;
  const row = Math.floor(dense / rowBytes);
  return byteOffset + row * pitchBytes + dense - row * rowBytes;
}

/** Between two tensors both guards are named. */
function guardName({ slots }: Image, position: number): string {
  const after = slots.findLast(({ byteOffset, bytes }) => position >= byteOffset + bytes);
  const before = slots.find(({ byteOffset }) => position < byteOffset);
  const sides = [
    ...(after === undefined ? [] : [`behind tensor ${after.tensor}`]),
    ...(before === undefined ? [] : [`before tensor ${before.tensor}`]),
  ];
  return `the guard ${sides.join(' and ')}`;
}

/** Counts within the bytes at hand. */
function countWrong(slot: Slot, size: number, from: number, expected: Uint8Array, seen: Uint8Array): number {
  let wrong = 0;
  for (let local = 0; local < slot.shard.elements; local++) {
    const start = offsetOf(slot, size, local) - from;
    if (start < 0) continue;
    if (start + size > expected.byteLength) break;
    for (let k = start; k < start + size; k++) {
      if (expected[k] === seen[k]) continue;
      wrong++;
      break;
    }
  }
  return wrong;
}

/** Most significant byte first, as numbers are written. */
function hex(bytes: Uint8Array): string {
  return `0x${[...bytes]
    .reverse()
    .map((byte) => byte.toString(16).padStart(2, '0'))
    .join('')}`;
}

function bufferOf(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
