// SPDX-License-Identifier: Apache-2.0
// Graphs that go before what they use, also when a measurement ends early: else what they use would be refused as busy, and hide why.

import type { Graph, Stream } from '@nccl-ext/core';

/** `body` gets a function that launches what `record` enqueues for a rank. */
export async function withGraphs<R extends { readonly stream: Stream }, T>(
  ranks: readonly R[],
  record: (rank: R) => void,
  body: (launch: (rank: R) => void) => Promise<T>,
): Promise<T> {
  const graphs = new Map<R, Graph>();
  try {
    for (const rank of ranks)
      graphs.set(
        rank,
        rank.stream.capture(() => record(rank)),
      );
    return await body((rank) => rank.stream.launch(graphs.get(rank)!));
  } finally {
    for (const graph of graphs.values()) await graph.dispose();
  }
}
