// SPDX-License-Identifier: Apache-2.0
// Processes that run cases side by side, played by one: every one of them sees its own rank of worlds that all of them share.

import { type Communicator, localWorld, type World } from '@nccl-ext/core';
import { ProcessGroup } from './process-group.js';
import type { WorldRequest } from './world-pool.js';

const options = { backend: 'embedded', logLevel: 'error' } as const;

/** As many groups as processes; `end` ends what they share. */
export class PlayedProcesses {
  readonly groups: readonly ProcessGroup[];
  readonly control: World;
  /** By port. */
  readonly #worlds = new Map<number, Promise<World>>();
  #port = 1024;

  static async start(processes: number, timeoutMs = 20_000): Promise<PlayedProcesses> {
    return new PlayedProcesses(await localWorld({ ranks: processes, timeoutMs, ...options }));
  }

  private constructor(control: World) {
    this.control = control;
    this.groups = control.ranks.map(
      (own) =>
        new ProcessGroup({
          control: own,
          join: ({ rank, port, ...request }) => this.#join(rank, port, request),
          alone: (request) => localWorld({ ...request, ...options }),
          freePort: async () => this.#port++,
        }),
    );
  }

  get made(): number {
    return this.#worlds.size;
  }

  async #join(rank: number, port: number, request: WorldRequest): Promise<Communicator> {
    const world = this.#worlds.get(port) ?? localWorld({ ...request, ...options });
    this.#worlds.set(port, world);
    return (await world).ranks[rank]!;
  }

  async end(): Promise<void> {
    for (const world of this.#worlds.values()) await (await world).dispose();
    await this.control.dispose();
  }
}
