// SPDX-License-Identifier: Apache-2.0
// Where the ranks that are to be the members of a group meet, with a deadline; ranks that are left out need not come.

import type { ErrorRecord, Outcome } from '../../contract/index.js';
import { errorRecord, failed, succeeded } from '../host/errors.js';

const op = 'changeMembership';

interface Arrival {
  readonly wanted: Uint8Array;
  readonly settle: (outcome: Outcome<number>) => void;
  readonly timer: NodeJS.Timeout;
}

/** Calls of `changeMembership` of one group that have not ended. */
export class MemberMeeting {
  readonly #timeoutMs: number;
  readonly #apply: (active: Uint8Array) => number;
  readonly #present = new Map<number, Arrival>();

  /** `apply` makes the change and returns the new epoch. */
  constructor(timeoutMs: number, apply: (active: Uint8Array) => number) {
    this.#timeoutMs = timeoutMs;
    this.#apply = apply;
  }

  arrive(rank: number, wanted: Uint8Array): Promise<Outcome<number>> {
    if (this.#present.has(rank))
      return Promise.resolve(
        failed(
          errorRecord('ERR_BUSY', op, `rank ${rank} is already in changeMembership`, {
            rank,
            help: 'Await the earlier call.',
          }),
        ),
      );
    return new Promise((settle) => {
      const timer = setTimeout(() => this.#expire(wanted), this.#timeoutMs);
      this.#present.set(rank, { wanted, settle, timer });
      if (!this.#compare(rank, wanted)) this.#complete(wanted);
    });
  }

  /** `rank` leaves for good. */
  leave(rank: number, error: ErrorRecord): void {
    this.#end(
      (_, peer) => peer === rank,
      () => error,
    );
    this.#end(
      ({ wanted }) => wanted[rank] === 1,
      (peer) =>
        errorRecord('ERR_RANK_LOST', op, `rank ${peer} cannot change the members: rank ${rank} has left`, {
          rank: peer,
          peer: rank,
          help: 'Call changeMembership without it.',
        }),
    );
  }

  fail(error: ErrorRecord): void {
    this.#end(
      () => true,
      () => error,
    );
  }

  /**
   * Ends the calls that list a rank which wants other members, true when that of `rank` is among them. A rank that nobody lists
   * cannot end the calls of others.
   */
  #compare(rank: number, wanted: Uint8Array): boolean {
    const against = new Map<number, number>();
    for (const [peer, arrival] of this.#present) {
      if (sameMembers(arrival.wanted, wanted)) continue;
      if (arrival.wanted[rank] === 1) against.set(peer, rank);
      if (wanted[peer] === 1 && !against.has(rank)) against.set(rank, peer);
    }
    const lists = new Map([...this.#present].map(([peer, arrival]) => [peer, listOf(arrival.wanted)]));
    this.#end(
      (_, peer) => against.has(peer),
      (ended) => {
        const peer = against.get(ended)!;
        return errorRecord('ERR_DISAGREEMENT', op, `ranks ${peer} and ${ended} asked for different members`, {
          rank: ended,
          peer,
          expected: lists.get(peer)!,
          seen: lists.get(ended)!,
          help: 'Pass the same members on every rank.',
        });
      },
    );
    return against.has(rank);
  }

  #complete(wanted: Uint8Array): void {
    for (const [peer, active] of wanted.entries()) if (active === 1 && !this.#present.has(peer)) return;
    const members = [...this.#present].filter(([peer]) => wanted[peer] === 1);
    const epoch = this.#apply(wanted);
    for (const [peer, { settle, timer }] of members) {
      this.#present.delete(peer);
      clearTimeout(timer);
      settle(succeeded(epoch));
    }
  }

  #expire(wanted: Uint8Array): void {
    const missing = [...wanted.keys()].filter((peer) => wanted[peer] === 1 && !this.#present.has(peer));
    this.#end(
      (arrival) => sameMembers(arrival.wanted, wanted),
      (rank) =>
        errorRecord(
          'ERR_TIMEOUT',
          op,
          `rank ${rank} waited ${this.#timeoutMs} ms in changeMembership for ${missing.length === 1 ? 'rank' : 'ranks'} ${missing.join(', ')}`,
          {
            rank,
            peer: missing[0] ?? -1,
            expected: listOf(wanted),
            seen: missing.length,
            help: 'Call it on every listed rank, or list only those that come; the group is as it was.',
          },
        ),
    );
  }

  #end(which: (arrival: Arrival, rank: number) => boolean, errorOf: (rank: number) => ErrorRecord): void {
    for (const [rank, arrival] of [...this.#present]) {
      if (!which(arrival, rank)) continue;
      this.#present.delete(rank);
      clearTimeout(arrival.timer);
      arrival.settle(failed(errorOf(rank)));
    }
  }
}

function sameMembers(a: Uint8Array, b: Uint8Array): boolean {
  return a.every((value, rank) => value === b[rank]);
}

function listOf(members: Uint8Array): string {
  return [...members.keys()].filter((rank) => members[rank] === 1).join(', ');
}
