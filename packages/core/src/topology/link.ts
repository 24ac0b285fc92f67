// SPDX-License-Identifier: Apache-2.0
// The kinds of path between two ranks, nearest first, and what the plan of a transfer needs to know of each.

/**
 * - `self`: a rank with itself (a copy within device memory)
 * - `device`: another rank on the same GPU
 * - `nvlink`: another GPU of the same NVLink domain
 * - `node`: the same node, outside the domain (PCIe)
 * - `rail`: another node, same rail (one switch between the two NICs)
 * - `network`: another node, other rail (through the spine)
 */
export const linkClasses = ['self', 'device', 'nvlink', 'node', 'rail', 'network'] as const;

/** One of {@link linkClasses}. */
export type LinkClass = (typeof linkClasses)[number];

/** What one rank can send over a class of link while it receives as much. */
export interface Link {
  /** 10^9 bytes per second, per rank and direction. */
  readonly bandwidthGBps: number;
  /** Microseconds until the first byte of a message arrives. */
  readonly latencyUs: number;
}

/** One link of each class. */
export type Links = Readonly<Record<LinkClass, Link>>;

// Bandwidths are nominal figures of data sheets. Latencies are priors for ranking plans, not specifications.
// Within a GPU a copy reads and writes each byte, so the figure is half of the memory bandwidth.
const shared = {
  // PCIe 5.0 x16: 64 GB/s per direction.
  node: { bandwidthGBps: 64, latencyUs: 3 },
  // One ConnectX-7 per GPU, 400 Gb/s (ConnectX-7 data sheet).
  rail: { bandwidthGBps: 50, latencyUs: 6 },
  network: { bandwidthGBps: 50, latencyUs: 8 },
};

/** H100 SXM: HBM3 3.35 TB/s, fourth-generation NVLink 900 GB/s in both directions together (H100 data sheet). */
export const hopperLinks: Links = {
  self: { bandwidthGBps: 1675, latencyUs: 1 },
  device: { bandwidthGBps: 1675, latencyUs: 1 },
  nvlink: { bandwidthGBps: 450, latencyUs: 2 },
  ...shared,
};

/** GB200: HBM3e 8 TB/s per GPU, fifth-generation NVLink 1.8 TB/s in both directions together (GB200 NVL72 data sheet). */
export const blackwellLinks: Links = {
  self: { bandwidthGBps: 4000, latencyUs: 1 },
  device: { bandwidthGBps: 4000, latencyUs: 1 },
  nvlink: { bandwidthGBps: 900, latencyUs: 2 },
  ...shared,
};
