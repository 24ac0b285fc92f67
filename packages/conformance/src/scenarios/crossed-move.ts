// SPDX-License-Identifier: Apache-2.0
// The move that scenarios are about: rows on ranks 0 and 1 become columns on ranks 2 and 3, so every source sends to every destination.

import { type NcclExtError, type Stream, shard } from '@nccl-ext/core';
import type { CheckCase, TensorSpec } from '../cases/case.js';
import type { GroupName } from '../cases/groups.js';
import { line } from '../cases/side.js';
import type { CaseWorld } from '../run/case-world.js';
import { type CheckContext, errorOf, requireThat } from '../run/check-context.js';
import type { Content } from '../run/image.js';
import { MoveSession } from '../run/move-session.js';

/** Ranks of the move. */
export const moveRanks = 4;
export const sourceRanks: readonly number[] = [0, 1];
export const destinationRanks: readonly number[] = [2, 3];

/** Its one tensor. */
export const crossed: TensorSpec = {
  shape: [64, 48],
  dtype: 'f32',
  source: line(2, shard(0)),
  destination: line(2, shard(1), 2),
};

/** A session of it in which every rank has prepared. */
export function openCrossed(world: CaseWorld, verify = false): Promise<MoveSession> {
  return MoveSession.open(world, { tensors: [crossed], verify });
}

/** Values of refit `number`. */
export function contentOf(number: number): Content {
  return { epoch: number, pass: 0, guard: (0xde + number) & 0xff };
}

/** What each stream ends with: an error, or undefined. */
export function settleStreams(streams: readonly Stream[]): Promise<readonly (NcclExtError | undefined)[]> {
  return Promise.all(
    streams.map(async (stream) => (await errorOf(stream.synchronize())) as NcclExtError | undefined),
  );
}

/** One whole refit, which must be right. */
export async function requireRefit(
  session: MoveSession,
  streams: readonly Stream[],
  number: number,
  move?: (place: number, stream: Stream) => void,
): Promise<void> {
  const refit = session.enqueueRefit(streams, contentOf(number), move);
  await Promise.all(streams.map((stream) => stream.synchronize()));
  const difference = refit.difference();
  requireThat(difference === undefined, `refit ${number}: ${difference}`);
}

/** The bytes of a rank's destination as they are now. */
export async function readDestination(
  session: MoveSession,
  place: number,
  stream: Stream,
): Promise<Uint8Array> {
  const { image, buffer } = session.ranks[place]!.destination;
  const bytes = new Uint8Array(image.bytes);
  if (buffer !== undefined) stream.download(bytes, buffer);
  await stream.synchronize();
  return bytes;
}

/** Throws unless nothing but the guard byte is there. */
export function requireUntouched(bytes: Uint8Array, guard: number, what: string): void {
  const at = bytes.findIndex((byte) => byte !== guard);
  requireThat(at < 0, `${what}: byte ${at} was written`);
}

/** A check on four ranks unless it says otherwise. */
export function check(
  group: GroupName,
  what: string,
  run: (context: CheckContext) => Promise<void>,
  more: Pick<CheckCase, 'reports' | 'spread'> & { readonly ranks?: number } = {},
): CheckCase {
  return { kind: 'check', name: `${group}/${what}`, group, ranks: moveRanks, run, ...more };
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}
