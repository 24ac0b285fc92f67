// SPDX-License-Identifier: Apache-2.0
// All ranks of a world in this process, driven by this thread: tests, demos, and several GPUs under one program.

import { NcclExtError } from '../errors/nccl-ext-error.js';
import { requireObject } from '../errors/require-kind.js';
import { describe } from '../mesh/require-integer.js';
import type { Logger } from '../observe/logger.js';
import type { OneProcessOptions } from '../options/world-options.js';
import { unwrap } from '../runtime/unwrap.js';
import { singleDomain } from '../topology/presets.js';
import type { Topology } from '../topology/topology.js';
import { topologyFor } from '../topology/topology-for.js';
import { openBackend } from './open-backend.js';
import { smsOfRanks } from './sms-of-ranks.js';
import { World } from './world.js';

/** Options of {@link localWorld}; those of docs/options.md besides. */
export interface LocalWorldOptions extends OneProcessOptions {
  /** Number of ranks, 1 to 1024. */
  readonly ranks: number;
  /** Name of a preset, a parsed JSON description, or a topology. Default: one NVLink domain. */
  readonly topology?: string | object | Topology | undefined;
  /** Device index of each rank. Default: rank modulo the number of devices. */
  readonly devices?: readonly number[] | undefined;
  readonly logger?: Logger | undefined;
  /** Ends creation; what was made so far is disposed and the call rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

/** The most ranks of one process. */
const maxLocalRanks = 1024;

/**
 * Makes `ranks` communicators in this process.
 *
 * @throws ERR_INVALID_ARGUMENT, ERR_TOPOLOGY, and the errors of the backend loader (docs/troubleshooting.md).
 * @example
 * ```ts
 * const world = await localWorld({ ranks: 4 });
 * try {
 *   await world.run((comm) => comm.agree('greeting', { hello: 'world' }));
 * } finally {
 *   await world.dispose();
 * }
 * ```
 */
export async function localWorld(options: LocalWorldOptions): Promise<World> {
  requireObject('options', options);
  const { ranks, topology, devices, logger, signal, ...explicit } = options;
  if (!Number.isInteger(ranks) || ranks < 1 || ranks > maxLocalRanks) {
    throw new NcclExtError(
      'ERR_INVALID_ARGUMENT',
      `ranks must be an integer from 1 to ${maxLocalRanks}, not ${describe(ranks)}.`,
      {
        field: 'ranks',
        seen: ranks,
      },
    );
  }
  checkDevices(devices, ranks);
  requireSignal(signal);
  signal?.throwIfAborted();
  const places = topology === undefined ? singleDomain(ranks) : topologyFor(topology, ranks);
  const { backend, values } = await openBackend('localWorld', explicit, logger);
  try {
    signal?.throwIfAborted();
    const { timeoutMs, workers, sms } = values;
    const handles = unwrap(
      await backend.runtime.createLocalRanks({
        ranks,
        timeoutMs,
        workers,
        sms: smsOfRanks(sms, ranks),
        ...(devices === undefined ? {} : { devices }),
      }),
    );
    const world = new World(backend, handles, places, values);
    if (signal?.aborted) {
      await world.dispose();
      signal.throwIfAborted();
    }
    return world;
  } catch (error) {
    await backend.dispose();
    throw error;
  }
}

function checkDevices(devices: readonly number[] | undefined, ranks: number): void {
  if (devices === undefined) return;
  const valid =
    Array.isArray(devices) &&
    devices.length === ranks &&
    Array.from(devices).every((device) => Number.isInteger(device) && device >= 0);
  if (valid) return;
  throw new NcclExtError(
    'ERR_INVALID_ARGUMENT',
    `devices must hold one device index per rank (${ranks}), not ${Array.isArray(devices) ? `[${Array.from(devices, describe)}]` : describe(devices)}.`,
    {
      field: 'devices',
      seen: devices,
    },
  );
}

function requireSignal(signal: unknown): void {
  if (signal === undefined || signal instanceof AbortSignal) return;
  throw new NcclExtError('ERR_INVALID_ARGUMENT', `signal must be an AbortSignal, not ${describe(signal)}.`, {
    field: 'signal',
  });
}
