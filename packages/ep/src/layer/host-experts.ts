// SPDX-License-Identifier: Apache-2.0
// Experts as a JavaScript function, in stream order on the thread that made the world: for tests, examples and the embedded backend.

import { requireFunction } from '@nccl-ext/core/extend';
import type { ExpertCall, ExpertLayer } from './expert-layer.js';
import { combineResults } from './host-results.js';
import { assignRows, gatherRows } from './host-rows.js';

/** The rows of one local expert. */
export interface HostExpertBatch {
  /** The expert's id in the group. */
  readonly expert: number;
  readonly rank: number;
  /** Rows in f32, [count, hidden]; packed: with the zero rows of the padding. */
  readonly rows: Float32Array;
  readonly count: number;
  readonly hidden: number;
}

/** f(x) for every row, [count, hidden]. */
export type HostExpert = (batch: HostExpertBatch) => Float32Array | Promise<Float32Array>;

/**
 * An expert layer that calls `compute` once per local expert that has rows. The rank's stream waits meanwhile, those of other ranks go on. It applies
 * weights where the layout wants it and sums in top-k order, in f32, rounded once to the dtype of the rows. A throw or a rejected promise
 * rejects the stream. A graph records it: every launch calls `compute` again.
 *
 * @throws ERR_UNSUPPORTED when enqueued on a backend whose memory the host cannot see.
 * @example
 * ```ts
 * const experts = hostExperts(({ expert, rows }) => rows.map((x) => x * (expert + 1)));
 * ```
 */
export function hostExperts(compute: HostExpert): ExpertLayer {
  requireFunction('compute', compute);
  return {
    enqueue: (call) => {
      call.stream.callHost(() => run(compute, call));
    },
  };
}

async function run(compute: HostExpert, call: ExpertCall): Promise<void> {
  const assigned = assignRows(call);
  const hidden = call.tokens.shape.at(-1)!;
  const results: Float32Array[] = [];
  for (const [local, rows] of assigned.rowsOf.entries()) {
    if (rows.length === 0) {
      results.push(new Float32Array(0));
      continue;
    }
    const batch = {
      expert: call.localExperts[local]!,
      rank: call.stream.communicator.rank,
      rows: gatherRows(call.tokens, rows),
      count: rows.length,
      hidden,
    };
    results.push(await compute(batch));
  }
  combineResults(call, assigned, results);
}
