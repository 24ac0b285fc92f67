// SPDX-License-Identifier: Apache-2.0
// What `--topology NAME|FILE` and the `topology` option accept, checked against the ranks that it must describe.

import { NcclExtError } from '../errors/nccl-ext-error.js';
import { requireInteger } from '../mesh/require-integer.js';
import { isPresetName, presets, presetTopology } from './presets.js';
import { Topology, topology } from './topology.js';
import type { TopologyDescription } from './topology-schema.js';

/**
 * The topology of `ranks` ranks: a preset by name, or the first `ranks` ranks of a topology or description.
 *
 * @param source name of a preset, a {@link Topology}, or a {@link TopologyDescription} such as a parsed JSON file.
 * @throws ERR_TOPOLOGY when the name is unknown, the description is malformed, or it has fewer ranks.
 * @example
 * ```ts
 * topologyFor('gb200-nvl72', 144).domainOf(143); // 1
 * ```
 */
export function topologyFor(source: unknown, ranks: number): Topology {
  if (isPresetName(source)) return presetTopology(source, ranks);
  if (typeof source === 'string') {
    throw new NcclExtError('ERR_TOPOLOGY', `No topology has the name ${JSON.stringify(source)}.`, {
      help: `Names are ${Object.keys(presets).join(', ')}; anything else is described in a JSON file.`,
      field: 'topology',
      expected: Object.keys(presets),
      seen: source,
    });
  }
  requireInteger('ERR_INVALID_ARGUMENT', 'ranks', ranks, 1);
  const whole = source instanceof Topology ? source : topology(source as TopologyDescription);
  if (whole.size < ranks) {
    throw new NcclExtError(
      'ERR_TOPOLOGY',
      `The topology describes ${whole.size} ranks, but ${ranks} take part.`,
      {
        help: `Describe the ranks ${whole.size} to ${ranks - 1} too.`,
        field: 'topology.ranks',
        expected: ranks,
        seen: whole.size,
      },
    );
  }
  return whole.first(ranks);
}
