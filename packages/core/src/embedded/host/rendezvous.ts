// SPDX-License-Identifier: Apache-2.0
// Where the collective host calls of a world meet: the k-th call of every rank, compared, with a deadline that names who is missing.
//
// All ranks of an embedded world are driven by one thread, so a meeting is a list of callbacks. A meeting that failed stays
// failed: who comes later learns of it instead of meeting the next call of the others.

import type { ErrorRecord, Outcome } from '../../contract/index.js';
import { errorRecord, failed } from './errors.js';

/** What a rank brings to a meeting. */
export interface Arrival<Part, Result> {
  readonly op: string;
  /** Must be equal on all ranks; names the call. */
  readonly topic: string;
  /** Must be equal on all ranks, with the name of what it is. */
  readonly agreed: { readonly field: string; readonly value: string };
  readonly part: Part;
  /** Gives every rank its result; called once, with the parts of all ranks. */
  readonly finish: (parts: readonly Part[]) => readonly Outcome<Result>[];
}

interface Member {
  readonly arrival: Arrival<unknown, unknown>;
  readonly settle: (outcome: Outcome<unknown>) => void;
  readonly timer: NodeJS.Timeout;
}

interface Meeting {
  readonly members: (Member | undefined)[];
  /** Set once the meeting failed: what a late rank is told. */
  failure: ((rank: number) => ErrorRecord) | undefined;
  /** Ranks that came, late ones included. */
  seen: number;
}

/** The meetings of one world. */
export class Rendezvous {
  readonly #ranks: number;
  readonly #timeoutMs: number;
  readonly #poison: (rank: number, reason: ErrorRecord) => void;
  readonly #next: number[];
  readonly #meetings = new Map<number, Meeting>();
  readonly #lost = new Map<number, string>();

  /** `poison` makes a rank unusable after a meeting that others may have left without it. */
  constructor(ranks: number, timeoutMs: number, poison: (rank: number, reason: ErrorRecord) => void) {
    this.#ranks = ranks;
    this.#timeoutMs = timeoutMs;
    this.#poison = poison;
    this.#next = new Array(ranks).fill(0);
  }

  /** Joins this rank's next meeting. */
  arrive<Part, Result>(rank: number, arrival: Arrival<Part, Result>): Promise<Outcome<Result>> {
    const number = this.#next[rank]!++;
    const meeting = this.#meetings.get(number) ?? {
      members: new Array(this.#ranks).fill(undefined),
      failure: undefined,
      seen: 0,
    };
    this.#meetings.set(number, meeting);
    if (++meeting.seen === this.#ranks) this.#meetings.delete(number);
    if (meeting.failure !== undefined) {
      const error = meeting.failure(rank);
      this.#poison(rank, error);
      return Promise.resolve(failed(error));
    }
    return new Promise((settle) => {
      const timer = setTimeout(() => this.#expire(meeting), this.#timeoutMs);
      meeting.members[rank] = {
        arrival: arrival as Arrival<unknown, unknown>,
        settle: settle as Member['settle'],
        timer,
      };
      const lost = [...this.#lost.keys()].find((peer) => meeting.members[peer] === undefined);
      if (lost !== undefined) this.#lose(meeting, lost);
      else if (meeting.members.every((member) => member !== undefined)) complete(meeting.members);
    });
  }

  /** `rank` leaves for good: its own calls end with `error`, those of others with ERR_RANK_LOST. */
  leave(rank: number, error: ErrorRecord, how: string): void {
    this.#lost.set(rank, how);
    for (const meeting of this.#meetings.values()) {
      const own = meeting.members[rank];
      if (own !== undefined) {
        clearTimeout(own.timer);
        own.settle(failed(error));
        meeting.members[rank] = undefined;
      }
      if (meeting.failure === undefined && meeting.members.some((member) => member !== undefined))
        this.#lose(meeting, rank);
    }
  }

  /** Ends every call with `error`. */
  fail(error: ErrorRecord): void {
    for (const meeting of this.#meetings.values()) {
      meeting.failure = () => error;
      for (const member of meeting.members) {
        clearTimeout(member?.timer);
        member?.settle(failed(error));
      }
      meeting.members.fill(undefined);
    }
  }

  #expire(meeting: Meeting): void {
    const missing = meeting.members.flatMap((member, rank) => (member === undefined ? [rank] : []));
    const present = meeting.members.flatMap((member, rank) => (member === undefined ? [] : [rank]));
    const { op, topic } = meeting.members[present[0]!]!.arrival;
    meeting.failure = (rank) =>
      errorRecord(
        'ERR_TIMEOUT',
        op,
        `rank ${rank} came to ${op} '${topic}' after ${names(present)} had given up on it`,
        { rank, peer: present[0]!, expected: this.#ranks, seen: present.length },
      );
    this.#endAll(meeting, (rank) =>
      errorRecord(
        'ERR_TIMEOUT',
        op,
        `rank ${rank} waited ${this.#timeoutMs} ms in ${op} '${topic}' for ${names(missing)}`,
        {
          rank,
          peer: missing[0]!,
          expected: this.#ranks,
          seen: present.length,
          help: 'Check that every rank makes the same collective calls in the same order, or raise the timeout.',
        },
      ),
    );
  }

  #lose(meeting: Meeting, peer: number): void {
    const how = this.#lost.get(peer)!;
    const op = meeting.members.find((member) => member !== undefined)!.arrival.op;
    const errorOf = (rank: number): ErrorRecord =>
      errorRecord('ERR_RANK_LOST', op, `rank ${rank} cannot complete ${op}: rank ${peer} was ${how}`, {
        rank,
        peer,
        help: 'Dispose the remaining ranks and make a new world.',
      });
    meeting.failure = errorOf;
    this.#endAll(meeting, errorOf);
  }

  #endAll(meeting: Meeting, errorOf: (rank: number) => ErrorRecord): void {
    meeting.members.forEach((member, rank) => {
      if (member === undefined) return;
      clearTimeout(member.timer);
      const error = errorOf(rank);
      this.#poison(rank, error);
      member.settle(failed(error));
    });
    meeting.members.fill(undefined);
  }
}

function complete(members: readonly (Member | undefined)[]): void {
  const present = members as readonly Member[];
  for (const member of present) clearTimeout(member.timer);
  const disagreement =
    differing(
      present.map(({ arrival }) => arrival.topic),
      'topic',
      present,
    ) ??
    differing(
      present.map(({ arrival }) => arrival.agreed.value),
      present[0]!.arrival.agreed.field,
      present,
    );
  if (disagreement !== undefined) {
    present.forEach((member, rank) => {
      member.settle(failed(disagreement(rank)));
    });
    return;
  }
  const outcomes = present[0]!.arrival.finish(present.map(({ arrival }) => arrival.part));
  present.forEach((member, rank) => {
    member.settle(outcomes[rank]!);
  });
}

/** Which ranks differ from most others, as a maker of each rank's record; undefined when all agree. */
function differing(
  values: readonly string[],
  field: string,
  members: readonly Member[],
): ((rank: number) => ErrorRecord) | undefined {
  const counts = new Map<string, number>();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  if (counts.size === 1) return undefined;
  const common = [...counts].reduce((best, entry) => (entry[1] > best[1] ? entry : best))[0];
  const others = values.flatMap((value, rank) => (value === common ? [] : [rank]));
  return (rank) => {
    const { op } = members[rank]!.arrival;
    return errorRecord(
      'ERR_DISAGREEMENT',
      op,
      `${names(others)} and the others hold different values of ${field} in ${op}`,
      {
        rank,
        peer: others[0]!,
        expected: common,
        seen: values[others[0]!]!,
        help: `Every rank must pass the same ${field}.`,
      },
    );
  };
}

function names(ranks: readonly number[]): string {
  if (ranks.length === 0) return 'nobody';
  return ranks.length === 1 ? `rank ${ranks[0]}` : `ranks ${ranks.join(', ')}`;
}
