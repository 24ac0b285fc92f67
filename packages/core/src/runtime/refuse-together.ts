// SPDX-License-Identifier: Apache-2.0
// A collective step that fails on one rank fails on all: the others learn who refused, instead of waiting for a timeout.

import { NcclExtError } from '../errors/nccl-ext-error.js';
import { textOf } from '../errors/text-of.js';
import type { AgreedFields } from './agreement.js';
import type { Communicator } from './communicator.js';

/**
 * Runs `step` on every rank, then compares the `fields` that it returned over the ranks. `op` says what the step does, as in `prepare
 * transfer`, and `topic` what the fields belong to.
 *
 * @throws this rank's own error, or ERR_RANK_LOST naming a rank whose step failed, or ERR_DISAGREEMENT.
 */
export async function refuseTogether<T>(
  communicator: Communicator,
  { op, topic }: { readonly op: string; readonly topic: string },
  step: () => { readonly value: T; readonly fields: AgreedFields },
): Promise<T> {
  let result: { readonly value: T; readonly fields: AgreedFields } | { readonly error: unknown };
  try {
    result = step();
  } catch (error) {
    result = { error };
  }
  const refusal = 'error' in result ? textOf(result.error) : null;
  const payload = new TextEncoder().encode(JSON.stringify({ refusal }));
  const payloads = await communicator.exchange(op, payload);
  if ('error' in result) throw result.error;
  const refusals = payloads.map((bytes) => refusalOf(bytes));
  const refused = refusals.findIndex((text) => text !== null);
  if (refused >= 0) {
    throw new NcclExtError('ERR_RANK_LOST', `Rank ${refused} refused to ${op}: ${refusals[refused]}`, {
      op,
      peer: refused,
    });
  }
  await communicator.agree(topic, result.fields);
  return result.value;
}

function refusalOf(payload: Uint8Array): string | null {
  try {
    return (JSON.parse(new TextDecoder().decode(payload)) as { readonly refusal: string | null }).refusal;
  } catch {
    return 'its answer cannot be read';
  }
}
