// SPDX-License-Identifier: Apache-2.0
// One block of shared memory as a thread sees it: the buffer and the views through which words are read and written.

import type { WasmMemory } from '../wasm/web-assembly.js';

/** Scratch of one worker at the start of every block that is a WebAssembly memory. */
export const scratchBytes = 65_536;

/** A block as it is posted to worker threads. */
export interface BlockMessage {
  readonly kind: 'block';
  readonly id: number;
  readonly buffer: SharedArrayBuffer;
  /** The WebAssembly memory whose buffer this is, if kernels can work in it. */
  readonly memory: WasmMemory | undefined;
}

/** Views of a block. Words beyond 4 GiB are reached by {@link bytesAt} only. */
export interface Space {
  readonly id: number;
  readonly buffer: SharedArrayBuffer;
  readonly memory: WasmMemory | undefined;
  readonly i32: Int32Array;
  readonly i64: BigInt64Array;
  readonly f64: Float64Array;
}

// A typed array ends at 2^32 elements, and a view beyond that many bytes helps nobody: control words lie in small blocks.
const wordBytes = 2 ** 32 - 65_536;

/** Opens a block in this thread. */
export function openSpace(block: BlockMessage): Space {
  const bytes = Math.min(block.buffer.byteLength, wordBytes);
  return {
    id: block.id,
    buffer: block.buffer,
    memory: block.memory,
    i32: new Int32Array(block.buffer, 0, Math.floor(bytes / 4)),
    i64: new BigInt64Array(block.buffer, 0, Math.floor(bytes / 8)),
    f64: new Float64Array(block.buffer, 0, Math.floor(bytes / 8)),
  };
}

/** Bytes `offset` to `offset + length` of a block, at any offset; `length` at most 2^32. */
export function bytesAt(space: Space, offset: number, length: number): Uint8Array {
  return new Uint8Array(space.buffer, offset, length);
}
