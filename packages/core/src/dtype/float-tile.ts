// SPDX-License-Identifier: Apache-2.0
// Converts arrays at any byte offset fast: elements pass, a tile at a time, through aligned scratch as f32 bits.

import { dtypeBytes, type FloatDType } from './dtype.js';
import { f32NaN, narrowFormats, oddBits } from './float-format.js';
import { narrowBf16, narrowByTable, narrowF16, widenBf16, widenByTable } from './float-loops.js';

/** Elements per tile; even. Both scratch buffers together (24 KiB) stay in the first-level cache. */
export const tileElements = 2048;

// Every use ends before the synchronous call that began it returns, so one copy per thread is enough.
const scratch = new ArrayBuffer(tileElements * 8);
const bytes = new Uint8Array(scratch);
const halves = new Uint16Array(scratch);
const words = new Int32Array(scratch);
const doubles = new Float64Array(scratch);

/** The elements under way, as f32 bits; f64 elements rounded as {@link loadTile} was told. */
export const tile: Int32Array = new Int32Array(tileElements);
const tileBytes = new Uint8Array(tile.buffer);
const tileSingles = new Float32Array(tile.buffer);

/**
 * Reads `count` elements of `source`, from element `start` on, into the tile.
 * `rounding` is how f64 becomes f32: `nearest` if f32 is the target, `odd` if a narrow type is.
 */
export function loadTile(
  from: FloatDType,
  source: Uint8Array,
  start: number,
  count: number,
  rounding: 'nearest' | 'odd',
): void {
  const size = dtypeBytes(from);
  const part = source.subarray(start * size, (start + count) * size);
  (from === 'f32' ? tileBytes : bytes).set(part);
  if (from === 'f32') return;
  if (from === 'bf16') widenBf16(halves, tile, count);
  else if (from !== 'f64') widenByTable(narrowFormats[from], size === 1 ? bytes : halves, tile, count);
  else if (rounding === 'odd') cutDoubles(count);
  else roundDoubles(count);
}

/** Writes the first `count` elements of the tile to `destination` from element `start` on; they were not read as `to`. */
export function storeTile(to: FloatDType, destination: Uint8Array, start: number, count: number): void {
  const size = dtypeBytes(to);
  if (to === 'f64') toDoubles(count);
  else if (to === 'bf16') narrowBf16(tile, halves, count);
  else if (to === 'f16') narrowF16(tile, halves, count);
  else if (to !== 'f32') narrowByTable(narrowFormats[to], tile, bytes, count);
  const result = to === 'f32' ? tileBytes : bytes;
  destination.set(result.subarray(0, count * size), start * size);
}

function cutDoubles(count: number): void {
  for (let i = 0; i < count; i++) tile[i] = oddBits(words[2 * i + 1]!, words[2 * i]!);
}

// An engine may store any NaN for a NaN, so NaNs are written as bits here and below.
function roundDoubles(count: number): void {
  for (let i = 0; i < count; i++) {
    const value = doubles[i]!;
    if (Number.isNaN(value)) tile[i] = f32NaN;
    else tileSingles[i] = value;
  }
}

function toDoubles(count: number): void {
  for (let i = 0; i < count; i++) {
    const value = tileSingles[i]!;
    if (Number.isNaN(value)) {
      words[2 * i] = -1;
      words[2 * i + 1] = 0x7fffffff;
    } else doubles[i] = value;
  }
}
