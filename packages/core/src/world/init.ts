// SPDX-License-Identifier: Apache-2.0
// One rank per process: joins the world that a launcher (torchrun, mpirun, srun, Kubernetes) started.

import type { Backend } from '../contract/index.js';
import { NcclExtError } from '../errors/nccl-ext-error.js';
import { requireObject } from '../errors/require-kind.js';
import type { Logger } from '../observe/logger.js';
import type { Options } from '../options/option-table.js';
import type { Environment } from '../options/resolve-options.js';
import type { WorldOptions } from '../options/world-options.js';
import { Communicator } from '../runtime/communicator.js';
import { unwrap } from '../runtime/unwrap.js';
import { singleDomain } from '../topology/presets.js';
import type { Topology } from '../topology/topology.js';
import { topologyFor } from '../topology/topology-for.js';
import { type Launch, readLauncher } from './launcher.js';
import { agreedOptions, openBackend } from './open-backend.js';
import { smsOfRanks } from './sms-of-ranks.js';

/** Options of {@link init}; those of docs/options.md besides. */
export interface InitOptions extends WorldOptions {
  /** As in `localWorld`. */
  readonly topology?: string | object | Topology | undefined;
  readonly logger?: Logger | undefined;
  /** Where the launcher's variables are; default `process.env`. */
  readonly env?: Environment | undefined;
}

/**
 * The communicator of this process's rank. Disposing it ends the backend too.
 *
 * @throws ERR_LAUNCHER when the launcher's variables are absent, incomplete or contradictory: the message lists what was seen.
 * ERR_SINGLE_PROCESS when more than one process would share the embedded backend.
 * @example
 * ```ts
 * // torchrun --nproc-per-node 8 ..., mpirun -n 8 node refit.mjs or srun -n 8 node refit.mjs
 * const comm = await init();
 * ```
 */
export async function init(options: InitOptions = {}): Promise<Communicator> {
  requireObject('options', options);
  const { topology, logger, env = process.env, ...explicit } = options;
  const launch = readLauncher(env, explicit);
  if (launch === undefined) throw noLauncher();
  const { worldSize } = launch;
  const places = topology === undefined ? singleDomain(worldSize) : topologyFor(topology, worldSize);
  const { backend, values } = await openBackend('init', explicit, logger, env);
  try {
    const handle = await joinWorld(backend, launch, values);
    const communicator = new ProcessCommunicator(undefined, backend, handle, launch.rank, places, values);
    await communicator.agree('options', agreedOptions(values));
    return communicator;
  } catch (error) {
    await backend.dispose();
    throw error;
  }
}

async function joinWorld(
  backend: Backend,
  launch: Launch,
  { timeoutMs, workers, sms: asked, token }: Options,
): Promise<number> {
  const sms = smsOfRanks(asked, launch.worldSize)[launch.rank]!;
  if (launch.worldSize > 1) {
    const { rank, worldSize, localRank, localWorldSize, address, port } = launch;
    const config = { rank, worldSize, localRank, localWorldSize, address, port, timeoutMs, sms };
    const secret = token === undefined ? {} : { token };
    return unwrap(await backend.runtime.joinRank({ ...config, ...secret }));
  }
  const [handle] = unwrap(await backend.runtime.createLocalRanks({ ranks: 1, timeoutMs, workers, sms }));
  if (handle === undefined) throw new NcclExtError('ERR_INTERNAL', 'The backend made no rank.');
  return handle;
}

/** The only rank of its process, so the backend ends with it. */
class ProcessCommunicator extends Communicator {
  protected override async release(): Promise<void> {
    await super.release();
    await this.backend.dispose();
  }
}

function noLauncher(): NcclExtError {
  return new NcclExtError(
    'ERR_LAUNCHER',
    'No launcher started this process: none of RANK, OMPI_COMM_WORLD_RANK and SLURM_STEP_NUM_TASKS is set.',
    {
      help: [
        'Start one process per rank: torchrun --nproc-per-node 8 --no-python node program.mjs, or mpirun -n 8 node program.mjs.',
        'Or srun -n 8 node program.mjs; in an indexed Job of Kubernetes, set WORLD_SIZE, MASTER_ADDR and MASTER_PORT.',
        'For all ranks in this process: localWorld({ ranks: 8 }).',
      ].join('\n'),
    },
  );
}
