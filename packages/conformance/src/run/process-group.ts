// SPDX-License-Identifier: Apache-2.0
// Processes that run the same cases side by side, each as one rank: they make their worlds together and a case passes on all or on none.

import { createHash } from 'node:crypto';
import type { Communicator } from '@nccl-ext/core';
import { backendOf } from '@nccl-ext/core/extend';
import type { CaseResult } from './case-result.js';
import type { CaseWorld } from './case-world.js';
import { PartWorld } from './part-world.js';
import type { WorldFactory, WorldRequest } from './world-pool.js';

/** What a process needs to become a rank of a new world. */
export interface JoinRequest extends WorldRequest {
  readonly rank: number;
  /** Where rank 0 listens. */
  readonly port: number;
}

/** What {@link ProcessGroup} is made of. */
export interface ProcessGroupOptions {
  /** Over all processes, and for nothing but this: cases may break their worlds, never this one. */
  readonly control: Communicator;
  /** Makes this process a rank of a new world. */
  readonly join: (request: JoinRequest) => Promise<Communicator>;
  /** Worlds of one rank; every process has its own. */
  readonly alone: WorldFactory;
  /** A port on which rank 0 can listen. */
  readonly freePort: () => Promise<number>;
}

type Result = Pick<CaseResult, 'name' | 'status' | 'detail' | 'ms'>;
type Message =
  | { readonly kind: 'world'; readonly port: number }
  | { readonly kind: 'meeting' }
  | { readonly kind: 'objection'; readonly why: string | undefined }
  | ({ readonly kind: 'result' } & Result);

/** Payloads are for kilobytes. */
const maxDetail = 2000;

/** A process whose case ended while others still ask for worlds waits for so many of them. */
const maxRefusals = 16;

/**
 * Cases that need fewer ranks than there are processes run on the first of them, and the others look on; cases of one rank run in
 * every process.
 *
 * @example
 * ```ts
 * const group = new ProcessGroup({ control: await init(), join, alone: (request) => localWorld(request), freePort });
 * const summary = await runCases(cases, { processes: group });
 * ```
 */
export class ProcessGroup {
  readonly #control: Communicator;
  readonly #options: ProcessGroupOptions;
  #last: Promise<unknown> = Promise.resolve();

  constructor(options: ProcessGroupOptions) {
    this.#control = options.control;
    this.#options = options;
  }

  /** The rank of this process. */
  get rank(): number {
    return this.#control.rank;
  }

  /** Milliseconds until a case counts as hung: others hear of it before they give up the process as lost. */
  get caseLimitMs(): number {
    return (this.#control.timeoutMs * 2) / 3;
  }

  /** Collective: throws unless all processes are about to run the same cases. */
  async agree(names: readonly string[]): Promise<void> {
    const digest = createHash('sha256').update(names.join('\n')).digest('hex');
    await this.#control.agree('selftest', { cases: names.length, names: digest });
  }

  /** Collective: this process's part of a new world; worlds are made one after another, in the order of the calls. */
  world(request: WorldRequest): Promise<CaseWorld> {
    const made = this.#last.then(() => this.#make(request));
    this.#last = made.catch(() => {});
    return made;
  }

  async #make(request: WorldRequest): Promise<CaseWorld> {
    if (request.ranks === 1) return this.#options.alone(request);
    const { rank } = this;
    const port = rank === 0 ? await this.#options.freePort() : 0;
    const [first] = await this.#together({ kind: 'world', port });
    const own =
      rank < request.ranks ? await this.#options.join({ ...request, rank, port: first!.port }) : undefined;
    return new PartWorld(request.ranks, backendOf(this.#control).info, own === undefined ? [] : [own]);
  }

  /** Collective: waits until all processes have come as far in their case. */
  async meet(): Promise<void> {
    await this.#together({ kind: 'meeting' });
  }

  /**
   * Collective: failed when it failed anywhere, and skipped when all `ranks` that take part did; the other processes only looked on.
   *
   * @throws ERR_RANK_LOST or ERR_TIMEOUT that names the process which is gone or stands still.
   */
  async combine(own: CaseResult, ranks: number): Promise<CaseResult> {
    const { name, status, ms } = own;
    const results = await this.#ended(
      { kind: 'result', name, status, detail: own.detail.slice(0, maxDetail), ms },
      name,
    );
    return { ...own, ...combined(results, ranks) };
  }

  /**
   * Collective, before the first case: why processes cannot run the cases, each with its name; empty where none has a reason. All get the
   * same, so that they refuse together.
   *
   * @throws ERR_RANK_LOST or ERR_TIMEOUT that names the process which is gone or stands still.
   */
  async objections(own: string | undefined): Promise<readonly string[]> {
    const why = own?.slice(0, maxDetail);
    const messages = await this.#ended({ kind: 'objection', why }, 'what they do before the first case');
    return messages.flatMap((message, rank) =>
      message.why === undefined ? [] : [`process ${rank}: ${message.why}`],
    );
  }

  /** The messages of all processes at the end of `what`. */
  async #ended<M extends Message>(message: M, what: string): Promise<readonly M[]> {
    for (let refused = 0; refused < maxRefusals; refused++) {
      const messages = await this.#exchange(message);
      // Else another process asked for a world and was refused; what it does ends by that.
      if (messages.every(({ kind }) => kind === message.kind)) return messages as readonly M[];
    }
    throw new Error(`other processes do not end ${what}`);
  }

  /** Rejects where another process is elsewhere in the case, as after a failure. */
  async #together<M extends Message>(message: M): Promise<readonly M[]> {
    const messages = await this.#exchange(message);
    const other = messages.findIndex(({ kind }) => kind !== message.kind);
    if (other < 0) return messages as readonly M[];
    const ended = messages[other]!.kind === 'result';
    throw new Error(
      `process ${other} ${ended ? 'has ended this case already' : 'is elsewhere in this case'}`,
    );
  }

  async #exchange(message: Message): Promise<readonly Message[]> {
    const payload = new TextEncoder().encode(JSON.stringify(message));
    const payloads = await this.#control.exchange('selftest', payload).catch((error: unknown) => {
      // What broke it says more than that it is broken.
      throw this.#control.failure ?? error;
    });
    return payloads.map((bytes) => JSON.parse(new TextDecoder().decode(bytes)) as Message);
  }
}

function combined(results: readonly Result[], ranks: number): Omit<Result, 'name'> {
  const ms = Math.max(...results.map((result) => result.ms));
  const names = new Set(results.map(({ name }) => name));
  if (names.size > 1) throw new Error(`processes run different cases at once: ${[...names].join(', ')}`);
  const failed = results.flatMap(({ status, detail }, rank) =>
    status === 'failed' ? [`process ${rank}: ${detail}`] : [],
  );
  if (failed.length > 0) return { status: 'failed', detail: failed.join('\n'), ms };
  const skipped = results.slice(0, ranks).every(({ status }) => status === 'skipped');
  return { status: skipped ? 'skipped' : 'passed', detail: skipped ? results[0]!.detail : '', ms };
}
