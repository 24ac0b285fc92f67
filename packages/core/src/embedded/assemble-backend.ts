// SPDX-License-Identifier: Apache-2.0
// Puts the calls of all parts together to one backend.

import { readFileSync } from 'node:fs';
import { type Backend, contractVersion } from '../contract/index.js';
import { epCalls } from './ep/ep-calls.js';
import { dataCalls } from './host/data-calls.js';
import { disposeRankState } from './host/dispose-rank.js';
import { eventCalls } from './host/event-calls.js';
import { faultCalls } from './host/fault-calls.js';
import { foreignCalls } from './host/foreign-calls.js';
import { graphCalls } from './host/graph-calls.js';
import { memoryCalls } from './host/memory-calls.js';
import { rankCalls } from './host/rank-calls.js';
import { splitCalls } from './host/split-calls.js';
import type { BackendState } from './host/state.js';
import { streamCalls } from './host/stream-calls.js';
import { m2nCalls } from './transfer/m2n-calls.js';

/** A backend over the arena and the workers of `state`. */
export function assembleBackend(state: BackendState): Backend {
  return {
    info: {
      name: 'embedded',
      version: packageVersion(),
      contractVersion,
      details: { node: process.version, memory: `up to ${state.arena.limit} bytes of this process` },
    },
    runtime: {
      lastError: () => state.lastError,
      ...rankCalls(state),
      ...splitCalls(state),
      ...memoryCalls(state),
      ...streamCalls(state),
      ...eventCalls(state),
      ...graphCalls(state),
      ...dataCalls(state),
      ...foreignCalls(state),
    },
    m2n: m2nCalls(state),
    ep: epCalls(state),
    faults: faultCalls(state),
    async dispose() {
      state.disposed = true;
      const ranks = [...state.worlds].flatMap((world) => world.ranks);
      await Promise.all(ranks.map((rank) => (rank.disposal ??= disposeRankState(state, rank))));
    },
  };
}

function packageVersion(): string {
  const manifest: { version: string } = JSON.parse(
    readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
  );
  return manifest.version;
}
