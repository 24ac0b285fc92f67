// SPDX-License-Identifier: Apache-2.0
// Whether ranks can be made on these GPUs and pass a barrier, and what their communicator then tells.

import { type BackendChoice, localWorld, NcclExtError, type World } from '@nccl-ext/core';
import { countText, timeText } from '../output/units.js';
import { type Check, failed, fixOf, ok } from './check.js';
import { factChecks } from './fact-checks.js';

/** The lines, and the backend's own facts about the communicator: empty when none could be made. */
export interface CommunicatorFindings {
  readonly checks: readonly Check[];
  readonly facts: Readonly<Record<string, string>>;
}

/** One rank per GPU, but at least two, so that there is a peer. */
export async function communicatorChecks(
  backend: BackendChoice,
  devices: number,
): Promise<CommunicatorFindings> {
  const ranks = Math.max(2, devices);
  const name = `World of ${countText(ranks, 'rank')}`;
  const began = performance.now();
  let world: World | undefined;
  try {
    world = await localWorld({ ranks, backend });
    await world.run(async (communicator) => {
      const stream = communicator.createStream();
      stream.barrier();
      await stream.synchronize();
    });
    const { facts } = world.ranks[0]!;
    const took = timeText(performance.now() - began);
    const made = ok(name, `passed a barrier, ${took} with the start of CUDA and NCCL`);
    return { checks: [made, ...budgetCheck(world), ...factChecks(facts)], facts };
  } catch (error) {
    if (!NcclExtError.is(error)) throw error;
    return { checks: [failed(name, error.message.split('\n')[0]!, fixOf(error, reportIt))], facts: {} };
  } finally {
    await world?.dispose();
  }
}

const reportIt = 'Report it with the output of `nccl-ext doctor --json`.';

function budgetCheck(world: World): Check[] {
  const { smBudget, multiprocessors, ranks } = world.ranks[0]!.device;
  if (multiprocessors === 0) return [];
  const found = `${smBudget} of ${multiprocessors} SMs per rank with ${countText(ranks, 'rank')} on a GPU (NCCL_EXT_SMS)`;
  return [ok('SM budget', found)];
}
