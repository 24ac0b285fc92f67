// SPDX-License-Identifier: Apache-2.0
// A version is served by all ranks or by none, and a destination that holds half of one says so until it is whole again.

import { type Stream, subscribe } from '@nccl-ext/core';
import { Publication, type PublishOptions } from '@nccl-ext/m2n';
import type { CheckCase } from '../cases/case.js';
import { streamsOf } from '../run/case-streams.js';
import { type CaseWorld, ownPlaces } from '../run/case-world.js';
import {
  type CheckContext,
  errorOf,
  expectRefusal,
  injectsFaults,
  requireRefusal,
  requireThat,
} from '../run/check-context.js';
import type { MoveSession } from '../run/move-session.js';
import {
  check,
  contentOf,
  destinationRanks,
  moveRanks,
  openCrossed,
  pause,
  readDestination,
  requireUntouched,
} from './crossed-move.js';

export const publishChecks: readonly CheckCase[] = [
  check('publish', 'three versions, each on all ranks', threeVersions, {
    reports: ['OpenRLHF/OpenRLHF#660'],
    spread: true,
  }),
  check('publish', 'a pause that fails leaves the old version everywhere', pauseFails, { spread: true }),
  check('publish', 'versions that differ between ranks', versionsDiffer, { spread: true }),
  check('publish', 'a flipped bit tears, a second publish mends', tearAndMend, {
    reports: ['vllm-project/vime#392'],
  }),
  check('publish', 'a lost source tears, a publish in a new world mends', lostSource, {
    reports: ['InternLM/xtuner#1993', 'huggingface/trl#6913'],
    spread: true,
  }),
  check('publish', 'a second publish while one runs', twice, { spread: true }),
];

/** Publications over one session, in the order of its ranks. */
class Engine {
  readonly session: MoveSession;
  readonly streams: readonly Stream[];
  readonly publications: readonly Publication[];

  constructor(world: CaseWorld, session: MoveSession, publications: readonly Publication[]) {
    this.session = session;
    this.streams = streamsOf(world);
    this.publications = publications;
  }

  /** Fills sources with the values of a version and destinations with its guard byte. */
  async load(version: number): Promise<void> {
    this.session.enqueueRefit(this.streams, contentOf(version), () => {});
    await Promise.all(this.streams.map((stream) => stream.synchronize()));
  }

  /** What each rank's publish ended with. */
  publish(
    version: (rank: number) => number,
    more: (rank: number) => Pick<PublishOptions, 'pause' | 'resume'> = () => ({}),
  ): Promise<readonly unknown[]> {
    return Promise.all(
      this.publications.map((publication, place) => {
        const { rank } = this.session.ranks[place]!.communicator;
        const transfer = this.session.transferOf(place);
        const stream = this.streams[place]!;
        return errorOf(publication.publish({ transfer, stream, version: version(rank), ...more(rank) }));
      }),
    );
  }

  /** Loads, publishes and compares a version, which must succeed. */
  async requireVersion(version: number): Promise<void> {
    await this.load(version);
    for (const error of await this.publish(() => version)) {
      requireThat(error === undefined, `version ${version}: ${error}`);
    }
    this.requireState('published', version);
    const refit = this.session.readBack(this.streams, contentOf(version));
    await Promise.all(this.streams.map((stream) => stream.synchronize()));
    const difference = refit.difference();
    requireThat(difference === undefined, `version ${version}: ${difference}`);
  }

  requireState(state: Publication['state'], version: number | undefined): void {
    this.publications.forEach((publication, place) => {
      const { rank } = this.session.ranks[place]!.communicator;
      requireThat(
        publication.state === state && publication.version === version,
        `rank ${rank} is ${publication.state} with version ${publication.version}; expected ${state} with ${version}`,
      );
    });
  }
}

async function open(world: CaseWorld, verify = false): Promise<Engine> {
  return new Engine(
    world,
    await openCrossed(world, verify),
    world.ranks.map(() => new Publication()),
  );
}

async function threeVersions(context: CheckContext): Promise<void> {
  const world = await context.shared(moveRanks);
  const engine = await open(world, true);
  engine.requireState('idle', undefined);
  const log: string[] = [];
  for (const version of [1, 2]) await engine.requireVersion(version);
  await engine.load(3);
  const errors = await engine.publish(
    () => 3,
    (rank) => ({
      pause: () => void log.push(`pause ${rank}`),
      resume: (served) => void log.push(`resume ${rank} with ${served}`),
    }),
  );
  requireThat(
    errors.every((error) => error === undefined),
    errors.join('; '),
  );
  engine.requireState('published', 3);
  const own = world.ranks.length;
  requireThat(log.length === 2 * own, `pause and resume were called: ${log.join(', ')}`);
  requireThat(
    log.slice(0, own).every((entry) => entry.startsWith('pause')) &&
      log.slice(own).every((entry) => entry.endsWith('with 3')),
    `a rank resumed before every rank had paused: ${log.join(', ')}`,
  );
  await engine.session.dispose();
}

async function pauseFails(context: CheckContext): Promise<void> {
  const world = await context.fresh({ ranks: moveRanks });
  const engine = await open(world);
  await engine.requireVersion(1);
  await engine.load(2);
  const resumed: unknown[] = [];
  const errors = await engine.publish(
    () => 2,
    (rank) => ({
      pause: () => {
        if (rank === 3) throw new Error('requests are still running');
      },
      resume: (version) => void resumed.push(version),
    }),
  );
  for (const place of ownPlaces(world, [3])) {
    const error = String(errors[place]);
    requireThat(error.includes('requests are still running'), `rank 3 says ${error}`);
  }
  for (const place of ownPlaces(world, [0, 1, 2]))
    requireRefusal(errors[place], { code: 'ERR_RANK_LOST', peer: 3 });
  engine.requireState('published', 1);
  requireThat(
    resumed.length === world.ranks.length && resumed.every((version) => version === 1),
    `resumed with ${resumed}`,
  );
  for (const place of ownPlaces(world, destinationRanks)) {
    const bytes = await readDestination(engine.session, place, engine.streams[place]!);
    requireUntouched(bytes, contentOf(2).guard, `rank ${world.ranks[place]!.rank}`);
  }
  await engine.requireVersion(2);
}

async function versionsDiffer(context: CheckContext): Promise<void> {
  const world = await context.fresh({ ranks: moveRanks });
  const engine = await open(world);
  await engine.requireVersion(1);
  for (const error of await engine.publish((rank) => (rank === 1 ? 7 : 2)))
    requireRefusal(error, { code: 'ERR_DISAGREEMENT', peer: 1, says: ['version', 'rank 1'] });
  engine.requireState('published', 1);
  await engine.requireVersion(2);
}

async function tearAndMend(context: CheckContext): Promise<void> {
  const world = await context.fresh({ ranks: moveRanks });
  const engine = await open(world, true);
  await engine.requireVersion(1);
  await engine.load(2);
  context.faultsOf(world).corruptNextMove(0);
  const errors = await engine.publish(() => 2);
  requireThat(
    errors.every((error) => error !== undefined),
    `a rank published: ${errors}`,
  );
  engine.requireState('torn', undefined);
  requireThat(
    engine.publications.every(({ whole }) => !whole),
    'a torn destination counts as whole',
  );
  await engine.requireVersion(3);
}

async function lostSource(context: CheckContext): Promise<void> {
  const world = await context.fresh({ ranks: moveRanks, timeoutMs: 300 });
  const engine = await open(world);
  await engine.requireVersion(1);
  await engine.load(2);
  const unsubscribe = stopInMove(world, engine);
  const outcome = engine.publish(() => 2);
  const others = ownPlaces(world, [1, 2, 3]).map((place) => engine.publications[place]!);
  await waitUntil(() => others.every(({ state }) => state === 'torn'));
  await context.meet();
  unsubscribe();
  requireThat(
    others.every(({ version }) => version === undefined),
    'a torn rank reports a version',
  );
  await context.end(world);
  await outcome;

  const next = await context.fresh({ ranks: moveRanks });
  const mended = new Engine(next, await openCrossed(next), engine.publications);
  await mended.requireVersion(3);
}

/** Rank 0 stops when the move is on its way, after every rank has paused: by injection, or behind a barrier that nobody joins. */
function stopInMove(world: CaseWorld, { session, streams }: Engine): () => void {
  if (!injectsFaults(world)) {
    for (const place of ownPlaces(world, [0])) streams[place]!.barrier();
    return () => {};
  }
  return subscribe('transfer.enqueued', ({ rank, digest }) => {
    if (rank === 0 && digest === session.plan.digest) world.faults.stop(0);
  });
}

async function twice(context: CheckContext): Promise<void> {
  const world = await context.shared(moveRanks);
  const engine = await open(world);
  await engine.load(1);
  const first = engine.publish(() => 1);
  for (const [place, publication] of engine.publications.entries()) {
    const transfer = engine.session.transferOf(place);
    const second = { transfer, stream: engine.streams[place]!, version: 2 };
    await expectRefusal(() => publication.publish(second), {
      code: 'ERR_INVALID_STATE',
      says: ['already runs'],
    });
  }
  for (const error of await first) requireThat(error === undefined, String(error));
  engine.requireState('published', 1);
  await engine.session.dispose();
}

async function waitUntil(condition: () => boolean): Promise<void> {
  const deadline = performance.now() + 20_000;
  while (!condition()) {
    requireThat(performance.now() < deadline, 'the other ranks did not tear within 20 s');
    await pause(10);
  }
}
