// SPDX-License-Identifier: Apache-2.0
// The topology that a plan and its world share.

import { type LocalWorldOptions, type Topology, topologyFor } from '@nccl-ext/core';

/** The `topology` of a plan request; empty where none was given, so that the planner's default holds. */
export function planTopology(
  source: LocalWorldOptions['topology'],
  ranks: number,
): { readonly topology?: Topology } {
  return source === undefined ? {} : { topology: topologyFor(source, ranks) };
}
