// SPDX-License-Identifier: Apache-2.0
// The embedded backend (`@nccl-ext/core/embedded`): ranks in one process, shared memory, worker threads; no GPU, no compiler.

import type { Backend } from '../contract/index.js';
import { assembleBackend } from './assemble-backend.js';
import { BackendState } from './host/state.js';
import { processPool } from './host/worker-pool.js';
import { processArena } from './memory/arena.js';

/**
 * Makes an embedded backend. Memory and worker threads are shared by all of them in this process and reused; a backend may
 * hold several worlds. Idle, it uses no CPU and does not keep the process alive.
 *
 * @example
 * ```ts
 * const backend = createEmbeddedBackend();
 * const ranks = await backend.runtime.createLocalRanks({ ranks: 2, timeoutMs: 30_000, workers: 0, sms: 0 });
 * // ... then disposeRank for each of ranks.value, and
 * await backend.dispose();
 * ```
 */
export function createEmbeddedBackend(): Backend {
  return assembleBackend(new BackendState(processArena, processPool));
}
