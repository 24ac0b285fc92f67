// SPDX-License-Identifier: Apache-2.0
// Common machines as data, so that a plan for thousands of ranks needs a name instead of a file.

import { NcclExtError } from '../errors/nccl-ext-error.js';
import { describe } from '../mesh/require-integer.js';
import { blackwellLinks, hopperLinks, type Links } from './link.js';
import { Topology } from './topology.js';

/** A machine made of equal nodes, one rank per GPU, one NIC rail per GPU of a node. */
export interface TopologyPreset {
  readonly title: string;
  readonly gpusPerNode: number;
  /** NVLink domains consist of whole nodes. */
  readonly nodesPerDomain: number;
  /** Absent: any number of nodes. */
  readonly maxNodes?: number;
  readonly links: Links;
}

/** The name of a preset. */
export type PresetName = 'single-node' | 'dgx-h100' | 'gb200-nvl72';

/** The machines that have a name. */
export const presets: Readonly<Record<PresetName, TopologyPreset>> = {
  'single-node': {
    title: 'one node with 8 H100 SXM GPUs',
    gpusPerNode: 8,
    nodesPerDomain: 1,
    maxNodes: 1,
    links: hopperLinks,
  },
  'dgx-h100': {
    title: 'DGX H100 nodes: 8 GPUs, one NVLink domain and 8 rails of 400 Gb/s each',
    gpusPerNode: 8,
    nodesPerDomain: 1,
    links: hopperLinks,
  },
  'gb200-nvl72': {
    title: 'GB200 NVL72 racks: 18 nodes of 4 GPUs in one NVLink domain, 4 rails of 400 Gb/s per node',
    gpusPerNode: 4,
    nodesPerDomain: 18,
    links: blackwellLinks,
  },
};

/** As many as a mesh can have. */
const maxRanks = 2 ** 24;

/** Whether `value` names a preset. */
export function isPresetName(value: unknown): value is PresetName {
  return typeof value === 'string' && Object.hasOwn(presets, value);
}

/**
 * The named machine, filled with ranks in order; the last node and domain may be partly used.
 *
 * @throws ERR_TOPOLOGY when the machine has fewer GPUs. ERR_INVALID_ARGUMENT when `ranks` is not a positive integer.
 * @example
 * ```ts
 * const pod = presetTopology('dgx-h100', 16);
 * pod.linkBetween(0, 7); // 'nvlink'
 * pod.linkBetween(0, 8); // 'rail'
 * pod.linkBetween(0, 9); // 'network'
 * ```
 */
export function presetTopology(name: PresetName, ranks: number): Topology {
  if (!isPresetName(name)) {
    throw new NcclExtError('ERR_TOPOLOGY', `No topology has the name ${describe(name)}.`, {
      help: `Names are ${Object.keys(presets).join(', ')}.`,
      field: 'name',
      expected: Object.keys(presets),
      seen: name,
    });
  }
  requireRanks(ranks);
  const { gpusPerNode, nodesPerDomain, maxNodes = Number.POSITIVE_INFINITY, links } = presets[name];
  if (ranks > gpusPerNode * maxNodes) {
    throw new NcclExtError(
      'ERR_TOPOLOGY',
      `The topology ${name} has ${gpusPerNode * maxNodes} GPUs, too few for ${ranks} ranks.`,
      {
        help: 'Use dgx-h100 or gb200-nvl72, which grow with the ranks, or describe the machine in a file.',
        field: 'topology',
        expected: `at most ${gpusPerNode * maxNodes} ranks`,
        seen: ranks,
      },
    );
  }
  return fill(ranks, gpusPerNode, nodesPerDomain, links);
}

/** Every rank on its own H100 of one node and one NVLink domain, however many: what plans assume when no topology is given. */
export function singleDomain(ranks: number): Topology {
  requireRanks(ranks);
  return fill(ranks, ranks, 1, hopperLinks);
}

function requireRanks(ranks: unknown): void {
  if (typeof ranks === 'number' && Number.isInteger(ranks) && ranks >= 1 && ranks <= maxRanks) return;
  throw new NcclExtError(
    'ERR_INVALID_ARGUMENT',
    `ranks is ${describe(ranks)}; it must be a positive integer, at most ${maxRanks}.`,
    { field: 'ranks', seen: ranks },
  );
}

function fill(ranks: number, gpusPerNode: number, nodesPerDomain: number, links: Links): Topology {
  const places = Array.from({ length: ranks }, (_, rank) => {
    const node = Math.floor(rank / gpusPerNode);
    const device = rank % gpusPerNode;
    return { node, domain: Math.floor(node / nodesPerDomain), rail: device, device };
  });
  return new Topology(places, links);
}
