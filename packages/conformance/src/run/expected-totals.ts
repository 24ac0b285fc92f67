// SPDX-License-Identifier: Apache-2.0
// Counts what must travel, element by element of the definition, and compares it with what the plan says.

import { dtypeBytes, type Topology } from '@nccl-ext/core';
import type { TransferPlan } from '@nccl-ext/m2n';
import type { TensorSpec } from '../cases/case.js';
import { heldIntervals, type Interval, lengthOf } from '../oracle/held-intervals.js';
import { Shard } from '../oracle/shard.js';
import { dtypesOf, placesOf } from './image.js';

/** Beyond this the count between domains, which marks every element, is left out. */
const maxMarkedElements = 2 ** 20;

/** What is wrong with the totals of a plan, or undefined. */
export function checkTotals(
  plan: TransferPlan,
  tensors: readonly TensorSpec[],
  ranks: number,
  topology: Topology,
): string | undefined {
  const { totals } = plan;
  const lowerBound = sum(tensors.map((tensor) => missingBytes(tensor, ranks)));
  if (totals.lowerBoundBytes !== lowerBound) {
    return `lowerBoundBytes is ${totals.lowerBoundBytes}; ${lowerBound} bytes are wanted where they are not held`;
  }
  // A rank that keeps a tensor twice may be forwarded it twice: nothing is copied after forwarding.
  const twice = tensors.some(({ destinationStored }) => destinationStored?.copies !== undefined);
  const allowed = lowerBound + (twice ? totals.forwardedBytes : 0);
  if (totals.wireBytes < lowerBound || totals.wireBytes > allowed) {
    return `wireBytes is ${totals.wireBytes}, but ${lowerBound} bytes are enough`;
  }
  if (tensors.some(({ shape }) => product(shape) > maxMarkedElements)) return undefined;
  const between = sum(tensors.map((tensor) => missingBytesBetweenDomains(tensor, ranks, topology)));
  if (totals.interDomainBytes === between && totals.interDomainLowerBoundBytes === between) return undefined;
  return (
    `${totals.interDomainBytes} bytes pass between domains, with ${totals.interDomainLowerBoundBytes} as the plan's lower bound; ` +
    `${between} bytes are wanted in domains that do not hold them`
  );
}

/** Sum over ranks of what a rank wants and does not hold itself, in bytes of the destination dtype. */
function missingBytes(tensor: TensorSpec, ranks: number): number {
  const tied = [...placesOf(tensor, 'source'), ...placesOf(tensor, 'destination')].length > 2;
  let elements = 0;
  for (let rank = 0; rank < ranks; rank++) {
    elements += tied ? markedElements(tensor, [rank]) : wantedElements(tensor, rank);
  }
  return elements * dtypeBytes(dtypesOf(tensor).destination);
}

/** For one place on each side, in closed form. */
function wantedElements(tensor: TensorSpec, rank: number): number {
  const wanted = heldIntervals(tensor.shape, tensor.destination, rank);
  if (wanted === undefined) return 0;
  const held = heldIntervals(tensor.shape, tensor.source, rank);
  const own = held === undefined ? 0 : product(wanted.map((list, dim) => commonLength(list, held[dim]!)));
  return product(wanted.map(lengthOf)) - own;
}

/** Elements that some of these ranks want and none of them holds, marked one by one. */
function markedElements(tensor: TensorSpec, members: readonly number[]): number {
  const state = new Uint8Array(product(tensor.shape));
  for (const rank of members) mark(state, tensor, 'destination', rank, 1);
  for (const rank of members) mark(state, tensor, 'source', rank, 0);
  return state.reduce((count, wanted) => count + wanted, 0);
}

/** Sum over domains of the elements that some rank of it wants and none of it holds. */
function missingBytesBetweenDomains(tensor: TensorSpec, ranks: number, topology: Topology): number {
  const byDomain = new Map<number, number[]>();
  for (let rank = 0; rank < ranks; rank++) {
    const domain = topology.domainOf(rank);
    byDomain.set(domain, [...(byDomain.get(domain) ?? []), rank]);
  }
  let elements = 0;
  for (const members of byDomain.values()) elements += markedElements(tensor, members);
  return elements * dtypeBytes(dtypesOf(tensor).destination);
}

function mark(
  state: Uint8Array,
  tensor: TensorSpec,
  side: 'source' | 'destination',
  rank: number,
  value: number,
): void {
  for (const place of placesOf(tensor, side)) {
    const held = heldIntervals(tensor.shape, place, rank);
    if (held === undefined) continue;
    const shard = new Shard(tensor.shape, held);
    shard.forEachRun(0, shard.elements, (_at, global, length) => {
      state.fill(value, global, global + length);
    });
  }
}

/** Both lists ascend. */
function commonLength(a: readonly Interval[], b: readonly Interval[]): number {
  let common = 0;
  let j = 0;
  for (const { start, length } of a) {
    while (j < b.length && b[j]!.start + b[j]!.length <= start) j++;
    for (let k = j; k < b.length && b[k]!.start < start + length; k++) {
      common += Math.min(start + length, b[k]!.start + b[k]!.length) - Math.max(start, b[k]!.start);
    }
  }
  return common;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

function product(values: readonly number[]): number {
  return values.reduce((total, value) => total * value, 1);
}
