// SPDX-License-Identifier: Apache-2.0
// The blocks that a worker knows, the kernels bound to each, and its own scratch memory.

import type { MessagePort } from 'node:worker_threads';
import { receiveMessageOnPort } from 'node:worker_threads';
import { blockOf } from '../memory/address.js';
import { type BlockMessage, openSpace, type Space, scratchBytes } from '../memory/space.js';
import { webAssembly } from '../wasm/web-assembly.js';
import { type Kernels, kernelsOf } from './kernels.js';

/** A worker's own scratch area, for bytes of blocks that kernels cannot reach. */
interface Scratch {
  readonly bytes: Uint8Array;
  readonly words: Int32Array;
  /** Offset of its first byte for its kernels. */
  readonly start: number;
  readonly kernels: Kernels;
}

/** Where a worker finds memory. */
export class Spaces {
  /** Offset of this worker's scratch area in every block with kernels. */
  readonly scratchOffset: number;
  readonly #spaces: Space[] = [];
  readonly #kernels: Kernels[] = [];
  readonly #port: MessagePort | undefined;
  #scratch: Scratch | undefined;

  /** `port` brings blocks that are made later; `slot` tells the workers of a process apart. */
  constructor(blocks: readonly BlockMessage[], slot: number, port?: MessagePort) {
    this.scratchOffset = slot * scratchBytes;
    this.#port = port;
    for (const block of blocks) this.#add(block);
  }

  /** The block of an address. Throws for an address that nobody handed out, which only a defect can do. */
  of(address: number): Space {
    const id = blockOf(address);
    let space = this.#spaces[id];
    while (space === undefined) {
      const next = this.#port && receiveMessageOnPort(this.#port);
      if (next === undefined) throw new Error(`block ${id} of address ${address} is unknown`);
      this.#add(next.message);
      space = this.#spaces[id];
    }
    return space;
  }

  /** The kernels that work in a block, undefined for a plain one. */
  kernels(space: Space): Kernels | undefined {
    if (space.memory === undefined) return undefined;
    let kernels = this.#kernels[space.id];
    if (kernels === undefined) {
      kernels = kernelsOf(space.memory);
      this.#kernels[space.id] = kernels;
    }
    return kernels;
  }

  /** In a block with kernels if there is one: a memory of its own takes 8 GiB of addresses, however small it is. */
  get scratch(): Scratch {
    this.#scratch ??= this.#makeScratch();
    return this.#scratch;
  }

  #makeScratch(): Scratch {
    const shared = this.#spaces.find((space) => space?.memory !== undefined);
    const memory = shared?.memory ?? new webAssembly.Memory({ initial: 1, maximum: 1, shared: true });
    const start = shared === undefined ? 0 : this.scratchOffset;
    return {
      bytes: new Uint8Array(memory.buffer, start, scratchBytes),
      words: new Int32Array(memory.buffer, start, scratchBytes / 4),
      start,
      kernels: shared === undefined ? kernelsOf(memory) : this.kernels(shared)!,
    };
  }

  #add(block: BlockMessage): void {
    this.#spaces[block.id] = openSpace(block);
  }
}
