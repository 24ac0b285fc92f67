// SPDX-License-Identifier: Apache-2.0
// The memory of all embedded worlds of this process: few large shared blocks that are reused and never given back.
//
// A SharedArrayBuffer is freed only when every thread that saw it has collected it, so memory that comes and goes with
// buffers, streams or worlds would pile up. Everything shared therefore lies here, control words included. A block is
// the memory of a WebAssembly module (4 GiB of addresses; the operating system backs only the pages that are touched), so
// that kernels reach source and destination without copying them; buffers that do not fit one get a plain block of
// their own, and so does everything where address space is too scarce for WebAssembly memories.

import { totalmem } from 'node:os';
import { constrainedMemory } from 'node:process';
import { type WasmMemory, wasmPage, webAssembly } from '../wasm/web-assembly.js';
import { addressOf, blockOf, maxBlocks, offsetOf } from './address.js';
import { FreeSpans, spanAlignment } from './free-spans.js';
import { type BlockMessage, openSpace, type Space, scratchBytes } from './space.js';

/** The most workers of a process, bounded by the scratch that each has in every block. */
export const maxWorkers = 256;

// The last page stays unused: kernels may read a vector beyond the end of a run, and 32-bit ends must not wrap to 0.
const wasmPages = 65_536;
const firstByte = scratchBytes * maxWorkers;
const plainBlockBytes = 64 * 2 ** 20;
// Finer would be false precision: the operating system backs pages, and a program's order of calls may vary.
const reservedUnit = 2 ** 20;

interface Block {
  readonly message: BlockMessage;
  readonly space: Space;
  readonly free: FreeSpans;
}

/** What an arena may use. */
interface ArenaOptions {
  /** False keeps every block plain, as where WebAssembly memories cannot be reserved. */
  readonly kernels: boolean;
  /** Bytes that may be live at once. */
  readonly limit: number;
}

/** Allocates addresses from blocks that all workers know. */
export class Arena {
  readonly #options: ArenaOptions;
  readonly #blocks: Block[] = [];
  readonly #sizes = new Map<number, number>();
  readonly #listeners = new Set<(block: BlockMessage) => void>();
  #liveBytes = 0;

  constructor(options: ArenaOptions) {
    this.#options = options;
  }

  /** Bytes in use, control memory included. */
  get liveBytes(): number {
    return this.#liveBytes;
  }

  /** Bytes kept for reuse, live ones included, in whole mebibytes per block. */
  get reservedBytes(): number {
    return this.#blocks.reduce(
      (sum, { free }) => sum + Math.ceil(free.touchedBytes / reservedUnit) * reservedUnit,
      0,
    );
  }

  get limit(): number {
    return this.#options.limit;
  }

  /** All blocks so far, for a worker that starts. */
  get blocks(): readonly BlockMessage[] {
    return this.#blocks.map((block) => block.message);
  }

  /** Calls `listener` with every block that is made from now on, before anything in it is handed out. */
  onBlock(listener: (block: BlockMessage) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** The address of `bytes` bytes of unknown content, undefined when there is no memory for them. */
  allocate(bytes: number): number | undefined {
    const size = Math.max(1, Math.ceil(bytes / spanAlignment)) * spanAlignment;
    if (this.#liveBytes + size > this.#options.limit) return undefined;
    const block = this.#bestBlock(size) ?? this.#addBlock(size);
    const offset = block?.free.take(size);
    if (block === undefined || offset === undefined) return undefined;
    const address = addressOf(block.message.id, offset);
    this.#sizes.set(address, size);
    this.#liveBytes += size;
    return address;
  }

  /** Like `allocate`, filled with zeros; for control memory, which is small. */
  allocateZeroed(bytes: number): number | undefined {
    const address = this.allocate(bytes);
    if (address !== undefined)
      new Uint8Array(this.space(address).buffer, offsetOf(address), Math.max(1, bytes)).fill(0);
    return address;
  }

  release(address: number): void {
    const size = this.#sizes.get(address)!;
    this.#sizes.delete(address);
    this.#liveBytes -= size;
    this.#blocks[blockOf(address) - 1]!.free.release(offsetOf(address), size);
  }

  /** The block of an address, opened in the thread that owns the arena. */
  space(address: number): Space {
    return this.#blocks[blockOf(address) - 1]!.space;
  }

  #bestBlock(size: number): Block | undefined {
    let best: Block | undefined;
    let length = Number.POSITIVE_INFINITY;
    for (const block of this.#blocks) {
      const fit = block.free.fit(size);
      if (fit >= length) continue;
      best = block;
      length = fit;
    }
    return best;
  }

  #addBlock(size: number): Block | undefined {
    if (this.#blocks.length === maxBlocks) return undefined;
    const memory =
      this.#options.kernels && size <= wasmPages * wasmPage - wasmPage - firstByte ? reserve() : undefined;
    const buffer = memory?.buffer ?? plainBuffer(Math.max(size, plainBlockBytes));
    if (buffer === undefined) return undefined;
    const message: BlockMessage = { kind: 'block', id: this.#blocks.length + 1, buffer, memory };
    const free = memory
      ? new FreeSpans(firstByte, buffer.byteLength - wasmPage)
      : new FreeSpans(0, buffer.byteLength);
    const block = { message, space: openSpace(message), free };
    this.#blocks.push(block);
    for (const listener of this.#listeners) listener(message);
    return block;
  }
}

/** The arena of this process. */
export const processArena: Arena = new Arena({ kernels: true, limit: physicalBytes() });

function physicalBytes(): number {
  const constrained = constrainedMemory?.() ?? 0;
  return constrained > 0 ? Math.min(totalmem(), constrained) : totalmem();
}

function reserve(): WasmMemory | undefined {
  try {
    return new webAssembly.Memory({ initial: wasmPages, maximum: wasmPages, shared: true });
  } catch {
    return undefined;
  }
}

function plainBuffer(bytes: number): SharedArrayBuffer | undefined {
  try {
    return new SharedArrayBuffer(bytes);
  } catch {
    return undefined;
  }
}
