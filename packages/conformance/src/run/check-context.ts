// SPDX-License-Identifier: Apache-2.0
// What a check has at hand: worlds, and ways to say that something is not as it should be.

import { type ErrorCode, type Faults, NcclExtError } from '@nccl-ext/core';
import { disposeStreams } from './case-streams.js';
import { type CaseWorld, isWhole } from './case-world.js';
import { requireMemory } from './require-memory.js';
import { Skipped } from './skipped.js';
import type { WorldPool, WorldRequest } from './world-pool.js';

/** Worlds of checks have short deadlines, and disposing waits for one at most. */
const disposeLimitMs = 10_000;

/** Given to every check; ends with it. */
export class CheckContext {
  readonly #pool: WorldPool;
  readonly #worlds: CaseWorld[] = [];
  readonly #shared = new Set<CaseWorld>();

  constructor(pool: WorldPool) {
    this.#pool = pool;
  }

  /** A world that other cases use too: leave it as it was. */
  async shared(ranks: number): Promise<CaseWorld> {
    const world = await this.#pool.shared(ranks);
    this.#shared.add(world);
    return world;
  }

  /** A world of its own, disposed after the check. */
  async fresh(request: WorldRequest): Promise<CaseWorld> {
    const world = await this.#pool.fresh(request);
    this.#worlds.push(world);
    return world;
  }

  /** Waits until every process has come here: one that has no part in what the others do must not end its world meanwhile. */
  meet(): Promise<void> {
    return this.#pool.meet();
  }

  /** Skips the check unless so many bytes can be had. */
  requireMemory(ranks: number, bytes: number): Promise<void> {
    return requireMemory(this.#pool, ranks, bytes);
  }

  /** Fault injection, or the end of the check where the backend has none. */
  faultsOf(world: CaseWorld): Faults {
    if (injectsFaults(world)) return world.faults;
    throw new Skipped(`the ${world.backend.name} backend injects no faults`);
  }

  /**
   * The places of ranks that take part while `missing` does not: where the backend injects faults it takes part and stands still,
   * elsewhere it is left out.
   */
  without(world: CaseWorld, missing: number): readonly number[] {
    const places = world.ranks.map((_, place) => place);
    if (!injectsFaults(world)) return places.filter((place) => world.ranks[place]!.rank !== missing);
    world.faults.stop(missing);
    return places;
  }

  /** Disposes a world, which must not take longer than its deadline. */
  end(world: CaseWorld): Promise<void> {
    // Worlds of processes have longer deadlines.
    const more = isWhole(world) ? 0 : (world.ranks[0]?.timeoutMs ?? 0);
    const limitMs = disposeLimitMs + more;
    return requireWithin(limitMs, world.dispose(), `a world was not disposed within ${limitMs / 1000} s`);
  }

  async dispose(): Promise<void> {
    for (const world of this.#worlds.splice(0)) await this.end(world);
    for (const world of this.#shared) await disposeStreams(world);
    this.#shared.clear();
  }
}

/** Whether the backend can make ranks late, absent or wrong. */
export function injectsFaults(world: CaseWorld): boolean {
  try {
    return world.faults !== undefined;
  } catch (error) {
    if (NcclExtError.is(error, 'ERR_UNSUPPORTED')) return false;
    throw error;
  }
}

/** Throws `message` unless the work ends in time. */
export async function requireWithin(
  milliseconds: number,
  work: Promise<void>,
  message: string,
): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(resolve, milliseconds, true);
  });
  const hung = await Promise.race([work.then(() => false), late]);
  clearTimeout(timer);
  requireThat(!hung, message);
}

/** What an error must be. */
export interface Refusal {
  readonly code: ErrorCode;
  /** Each must appear in the message. */
  readonly says?: readonly string[];
  /** The rank that the error must name as missing or at fault. */
  readonly peer?: number;
}

/** Passes when `attempt` throws or rejects as described. */
export async function expectRefusal(attempt: () => unknown, refusal: Refusal): Promise<void> {
  let result: unknown;
  try {
    result = await attempt();
  } catch (error) {
    requireRefusal(error, refusal);
    return;
  }
  throw new Error(`expected ${refusal.code}, but the call went through and gave ${String(result)}`);
}

/** Throws unless `error` is as described. */
export function requireRefusal(error: unknown, { code, says = [], peer }: Refusal): void {
  if (!NcclExtError.is(error)) {
    throw new Error(`expected an NcclExtError with ${code}, got ${String(error)}`, { cause: error });
  }
  if (error.code !== code) {
    throw new Error(`expected ${code}, got ${error.code}: ${error.message}`, { cause: error });
  }
  const missing = says.filter((text) => !error.message.includes(text));
  if (missing.length > 0) {
    throw new Error(`the message does not say ${missing.join(', ')}: ${error.message}`, { cause: error });
  }
  if (peer !== undefined && error.peer !== peer) {
    throw new Error(`the error names rank ${error.peer}, not ${peer}: ${error.message}`, { cause: error });
  }
}

/** Throws `message` unless `condition`. */
export function requireThat(condition: boolean, message: string): asserts condition {
  if (!condition) throw new Error(message);
}

/** What a promise ended with: its error, or undefined. */
export async function errorOf(promise: Promise<unknown>): Promise<unknown> {
  try {
    await promise;
    return undefined;
  } catch (error) {
    return error ?? new Error('rejected with nothing');
  }
}
