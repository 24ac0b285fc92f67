// SPDX-License-Identifier: Apache-2.0
// Which GPUs there are, and which of them read and write each other's memory directly.

import type { ProbedDevice } from '@nccl-ext/core/contract';
import { bytesText } from '../output/units.js';
import { type Check, ok, warning } from './check.js';

/** One line per GPU; where there are several, one more for who reaches whom. */
export function deviceChecks(devices: readonly ProbedDevice[]): Check[] {
  const lines = devices.map((device) => ok(`GPU ${device.index}`, describeDevice(device)));
  return devices.length < 2 ? lines : [...lines, peersCheck(devices)];
}

function describeDevice({
  name,
  computeCapability,
  multiprocessors,
  memoryBytes,
  uuid,
}: ProbedDevice): string {
  return [
    name,
    `compute capability ${computeCapability}`,
    `${multiprocessors} SMs`,
    `${bytesText(memoryBytes)} memory`,
    uuid,
  ].join(', ');
}

function peersCheck(devices: readonly ProbedDevice[]): Check {
  const name = 'GPU peers';
  const complete = devices.every(({ peers }) => peers.length === devices.length - 1);
  if (complete) return ok(name, 'each GPU reaches every other one');
  return warning(
    name,
    peersMatrix(devices),
    'Ranks on GPUs without + go through host memory or the network. `nvidia-smi topo -p2p r` says why; in virtual machines ' +
      'and on PCIe it is often access control (ACS, IOMMU).',
  );
}

/** A row per GPU and a column per peer: + reaches it, - does not. */
function peersMatrix(devices: readonly ProbedDevice[]): string {
  const width = Math.max(...devices.map(({ index }) => String(index).length));
  const cell = (text: string | number): string => String(text).padStart(width);
  const header = [cell(''), ...devices.map(({ index }) => cell(index))];
  const rows = devices.map(({ index, peers }) => [
    cell(index),
    ...devices.map((peer) => cell(peer.index === index ? '.' : peers.includes(peer.index) ? '+' : '-')),
  ]);
  return [header, ...rows].map((row) => row.join(' ')).join('\n');
}
