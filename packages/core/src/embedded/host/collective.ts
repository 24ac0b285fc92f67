// SPDX-License-Identifier: Apache-2.0
// One rank's part in a collective host call.

import type { Outcome } from '../../contract/index.js';
import { type errorRecord, failed } from './errors.js';
import type { RankState } from './objects.js';
import type { Arrival } from './rendezvous.js';
import { unusable } from './state.js';

/** Meets the other ranks, once this rank's gate lets it through. Poisoned ranks do not come. */
export function collective<Part, Result>(
  rank: RankState,
  arrival: Arrival<Part, Result>,
): Promise<Outcome<Result>> {
  const { op } = arrival;
  const refusal = unusable(rank, op);
  if (refusal !== undefined) return Promise.resolve(failed(refusal));
  return new Promise((resolve) => {
    rank.gate.arrive(() => {
      // What happened to the rank while the call stood at the gate is the reason itself.
      const reason = rank.world.poisonOf(rank.rank) ?? unusable(rank, op);
      resolve(
        reason === undefined
          ? rank.world.rendezvous.arrive(rank.rank, arrival)
          : failed({ ...reason, op, rank: rank.rank }),
      );
    });
  });
}

/** Fault injection: whether this rank must falsify what it brings to `topic`, which happens once. */
export function takeDisagreement(rank: RankState, topic: string): boolean {
  if (rank.disagreeOn === undefined || !topic.startsWith(rank.disagreeOn)) return false;
  rank.disagreeOn = undefined;
  return true;
}

/** Outcomes that refuse a call on all ranks: each rank its own error, the others that of the first rank at fault. */
export function refuseAll<Result>(
  op: string,
  errors: readonly (ReturnType<typeof errorRecord> | undefined)[],
): readonly Outcome<Result>[] {
  const first = errors.findIndex((error) => error !== undefined);
  const cause = errors[first]!;
  return errors.map((error, rank) =>
    failed(
      error ?? {
        ...cause,
        op,
        rank,
        peer: first,
        detail: `rank ${first} could not take part in ${op}: ${cause.detail}`,
      },
    ),
  );
}
