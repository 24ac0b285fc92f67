// SPDX-License-Identifier: Apache-2.0
// Keeps a few worlds alive between cases, because making one costs more than most cases.

import { localWorld } from '@nccl-ext/core';
import type { CaseWorld } from './case-world.js';

/** What a case may ask of a world. */
export interface WorldRequest {
  readonly ranks: number;
  /** Of every wait for a peer. */
  readonly timeoutMs?: number;
}

/** Makes a world; the default is `localWorld` with its own choice of backend. */
export type WorldFactory = (request: WorldRequest) => Promise<CaseWorld>;

/** Worlds of different sizes that stay alive. */
const maxWorlds = 3;

/** Worlds by size, the least recently used leaves first. */
export class WorldPool {
  readonly #make: WorldFactory;
  readonly meet: () => Promise<void>;
  readonly #worlds = new Map<number, CaseWorld>();

  /** `meet` waits for other processes, where there are some. */
  constructor(
    make: WorldFactory = (request) => localWorld(request),
    meet: () => Promise<void> = async () => {},
  ) {
    this.#make = make;
    this.meet = meet;
  }

  /** A world that later cases use too. */
  async shared(ranks: number): Promise<CaseWorld> {
    const known = this.#worlds.get(ranks);
    this.#worlds.delete(ranks);
    const world = known ?? (await this.#make({ ranks }));
    this.#worlds.set(ranks, world);
    for (const oldest of this.#worlds.keys()) {
      if (this.#worlds.size <= maxWorlds) break;
      await this.discard(oldest);
    }
    return world;
  }

  /** A world for one case, which disposes it. */
  fresh(request: WorldRequest): Promise<CaseWorld> {
    return this.#make(request);
  }

  /** Ends the shared world of this size, after a case that may have harmed it. */
  async discard(ranks: number): Promise<void> {
    const world = this.#worlds.get(ranks);
    this.#worlds.delete(ranks);
    await world?.dispose();
  }

  /** Leaves a world that hangs to itself: disposing it would hang too. */
  forget(ranks: number): void {
    this.#worlds.delete(ranks);
  }

  async dispose(): Promise<void> {
    for (const ranks of [...this.#worlds.keys()]) await this.discard(ranks);
  }
}
