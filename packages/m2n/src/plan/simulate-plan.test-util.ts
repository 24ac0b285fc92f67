// SPDX-License-Identifier: Apache-2.0
// Executes the programs of all ranks on tagged bytes and compares with what each rank should hold, element by element.

import { dtypeBytes, linkClasses, localToGlobal, type Topology, topology } from '@nccl-ext/core';
import { castOf, moveLoops, type TransferProgram } from '@nccl-ext/core/contract';
import { expect } from 'vitest';
import type { HeldTensor } from './held-tensors.js';
import type { Part } from './side-pattern.js';
import type { TransferPlan } from './transfer-plan.js';

/** Runs the plan, checks all that a plan promises, and returns it. */
export function checked(plan: TransferPlan): TransferPlan {
  const programs = Array.from({ length: plan.worldSize }, (_, rank) =>
    plan.program(rank, { receives: true }),
  );
  const sources = programs.map(({ rank }) => memories(plan, plan.sourceTensorsOf(rank), true));
  const destinations = programs.map(({ rank }) => memories(plan, plan.destinationTensorsOf(rank), false));
  for (const stage of [0, 1]) {
    for (const { rank, sends } of programs) {
      for (let i = 0; i < sends.length; i++) {
        if (sends.stage[i] !== stage) continue;
        const reads = (stage === 0 ? sources : destinations)[rank]!.get(sends.sourceTensor[i]!)!;
        const writes = destinations[sends.peer[i]!]!.get(sends.tensor[i]!)!;
        execute(sends, i, reads, writes);
      }
    }
  }
  for (const { rank } of programs) {
    const expected = memories(plan, plan.destinationTensorsOf(rank), true);
    for (const [tensor, bytes] of expected) {
      if (!same(destinations[rank]!.get(tensor)!, bytes)) {
        expect(destinations[rank]!.get(tensor), `tensor ${tensor} of rank ${rank}`).toEqual(bytes);
      }
    }
  }
  checkViews(programs);
  checkTotals(plan, programs);
  return plan;
}

type Memory = Float64Array;

/** One number per byte: which byte of which element of which tensor it is; NaN where nothing was written. Tensors may share a storage. */
function memories(plan: TransferPlan, held: readonly HeldTensor[], filled: boolean): Map<number, Memory> {
  const storages = new Map<string, number>();
  for (const { storage, requiredBytes } of held) {
    storages.set(storage, Math.max(storages.get(storage) ?? 0, requiredBytes));
  }
  const memory = new Map(
    [...storages].map(([storage, bytes]) => [storage, new Float64Array(bytes).fill(Number.NaN)]),
  );
  for (const { tensor, storage, parts, dtype } of held) {
    const { shape, request } = plan.tensors[tensor]!;
    const bytes = memory.get(storage)!;
    for (const part of parts) {
      eachElement(part, shape, (global, at) => {
        for (let k = 0; k < dtypeBytes(dtype); k++) {
          bytes[at + k] = filled ? (request * 2 ** 24 + global) * 8 + k : Number.NaN;
        }
      });
    }
  }
  return new Map(held.map(({ tensor, storage }) => [tensor, memory.get(storage)!]));
}

/** Calls `visit` with the row-major global index and the byte of every element of a part. */
function eachElement(
  { dims, byteOffset, byteStrides }: Part,
  shape: readonly number[],
  visit: (global: number, byte: number) => void,
): void {
  const globals = dims.map((dim) => Array.from({ length: dim.extent }, (_, i) => localToGlobal(dim, i)));
  const walk = (d: number, global: number, byte: number): void => {
    if (d === dims.length) {
      visit(global, byte);
      return;
    }
    const of = globals[d]!;
    for (let i = 0; i < of.length; i++) walk(d + 1, global * shape[d]! + of[i]!, byte + i * byteStrides[d]!);
  };
  walk(0, 0, byteOffset);
}

function execute(table: TransferProgram['sends'], i: number, reads: Memory, writes: Memory): void {
  const cast = castOf(table.transform[i]!);
  const dtypeSizes: readonly number[] = [8, 4, 2, 2, 1, 1];
  const from = cast ? dtypeSizes[cast.from]! : 1;
  const to = cast ? dtypeSizes[cast.to]! : 1;
  const counts = Array.from({ length: moveLoops }, (_, loop) => table.counts[i * moveLoops + loop]!);
  const walk = (loop: number, source: number, destination: number): void => {
    if (loop < moveLoops) {
      const at = i * moveLoops + loop;
      for (let k = 0; k < counts[loop]!; k++) {
        walk(
          loop + 1,
          source + k * table.sourceStrides[at]!,
          destination + k * table.destinationStrides[at]!,
        );
      }
      return;
    }
    for (let unit = 0; unit < table.inner[i]!; unit++) {
      for (let k = 0; k < to; k++) {
        const at = destination + unit * to + k;
        if (!Number.isNaN(writes[at]!)) throw new Error(`byte ${at} is written twice`);
        const value = cast ? reads[source + unit * from]! + k : reads[source + unit]!;
        if (Number.isNaN(value)) throw new Error(`byte ${source + unit} is read before it is there`);
        writes[at] = value;
      }
    }
  };
  walk(0, table.sourceOffset[i]!, table.destinationOffset[i]!);
}

function same(a: Memory, b: Memory): boolean {
  return a.length === b.length && a.every((value, i) => Object.is(value, b[i]));
}

/** Bytes of a move as it is written. */
function moveBytes(table: TransferProgram['sends'], i: number, plan: TransferPlan): number {
  const unit = table.transform[i] === 0 ? 1 : dtypeBytes(plan.tensors[table.tensor[i]!]!.destinationDType);
  const loops = table.counts
    .subarray(i * moveLoops, (i + 1) * moveLoops)
    .reduce((product, n) => product * n, 1);
  return table.inner[i]! * unit * loops;
}

function rows(table: TransferProgram['sends'], keep: (i: number) => boolean): unknown[] {
  const out: unknown[] = [];
  for (let i = 0; i < table.length; i++) {
    if (!keep(i)) continue;
    const loops = (values: Float64Array) => [...values.subarray(i * moveLoops, (i + 1) * moveLoops)];
    const { stage, tensor, sourceTensor, sourceOffset, destinationOffset, inner, transform } = table;
    out.push([
      ...[stage, tensor, sourceTensor, sourceOffset, destinationOffset, inner, transform].map(
        (values) => values[i],
      ),
      ...[table.counts, table.sourceStrides, table.destinationStrides].map(loops),
    ]);
  }
  return out;
}

/** Receives mirror sends, tables are sorted, peers are those that occur. */
function checkViews(programs: readonly TransferProgram[]): void {
  for (const { rank, sends, receives, receivePeers, forwardPeers } of programs) {
    for (const table of [sends, receives!]) {
      for (let i = 1; i < table.length; i++) {
        const order =
          table.stage[i - 1]! - table.stage[i]! ||
          table.peer[i - 1]! - table.peer[i]! ||
          table.tensor[i - 1]! - table.tensor[i]!;
        expect(order).toBeLessThanOrEqual(0);
      }
    }
    const senders = [new Set<number>(), new Set<number>()] as const;
    let arriving = 0;
    for (const other of programs) {
      const sent = rows(other.sends, (i) => other.sends.peer[i] === rank);
      arriving += sent.length;
      expect(rows(receives!, (i) => receives!.peer[i] === other.rank)).toEqual(sent);
      for (let i = 0; i < other.sends.length; i++) {
        if (other.sends.peer[i] === rank && other.rank !== rank)
          senders[other.sends.stage[i] as 0 | 1].add(other.rank);
      }
    }
    expect(receives!.length).toBe(arriving);
    expect([...receivePeers]).toEqual([...senders[0]].sort((x, y) => x - y));
    expect([...forwardPeers]).toEqual([...senders[1]].sort((x, y) => x - y));
  }
}

/** Recounts every figure from the programs, and the bounds element by element. */
function checkTotals(plan: TransferPlan, programs: readonly TransferProgram[]): void {
  const { totals } = plan;
  const byLink = Object.fromEntries(linkClasses.map((name) => [name, 0])) as Record<string, number>;
  const sent = new Float64Array(plan.worldSize);
  let forwarded = 0;
  for (const { rank, sends } of programs) {
    for (let i = 0; i < sends.length; i++) {
      const bytes = moveBytes(sends, i, plan);
      byLink[plan.topology.linkBetween(rank, sends.peer[i]!)]! += bytes;
      if (sends.peer[i] === rank) continue;
      sent[rank]! += bytes;
      if (sends.stage[i] === 1) forwarded += bytes;
    }
  }
  expect(totals.bytesByLink).toEqual(byLink);
  expect(totals.localBytes).toBe(byLink.self);
  expect(totals.forwardedBytes).toBe(forwarded);
  expect(totals.wireBytes).toBe(sent.reduce((sum, bytes) => sum + bytes, 0));
  expect(totals.interDomainBytes).toBe(byLink.node! + byLink.rail! + byLink.network!);
  const ranks = programs.map(({ rank }) => rank).filter((rank) => plan.sourceTensorsOf(rank).length > 0);
  const ofSources = ranks.map((rank) => sent[rank]!);
  expect(totals.maxRankBytes).toBe(Math.max(0, ...ofSources));
  expect(totals.meanRankBytes).toBeCloseTo(
    ofSources.reduce((sum, bytes) => sum + bytes, 0) / Math.max(1, ranks.length),
    6,
  );
  const { lowerBound, interDomain } = bounds(plan);
  expect(totals.lowerBoundBytes).toBe(lowerBound);
  expect(totals.interDomainLowerBoundBytes).toBe(interDomain);
  expect(totals.interDomainBytes).toBe(interDomain);
}

/** sum b_p |D_p \ S_p| and sum b_p |Dom(D_p) \ Dom(S_p)|, one element at a time. Worlds here have at most 31 ranks. */
function bounds(plan: TransferPlan): { lowerBound: number; interDomain: number } {
  const holders = (side: 'source' | 'destination'): Map<string, Int32Array> => {
    const out = new Map<string, Int32Array>();
    for (let rank = 0; rank < plan.worldSize; rank++) {
      const held = side === 'source' ? plan.sourceTensorsOf(rank) : plan.destinationTensorsOf(rank);
      for (const { tensor, parts } of held) {
        const { name, shape } = plan.tensors[tensor]!;
        const masks = out.get(name) ?? new Int32Array(shape.reduce((product, extent) => product * extent, 1));
        out.set(name, masks);
        for (const part of parts) {
          eachElement(part, shape, (global) => {
            masks[global]! |= 1 << rank;
          });
        }
      }
    }
    return out;
  };
  const have = holders('source');
  const want = holders('destination');
  const known = new Map<number, number>();
  const domains = (ranks: number): number => {
    let mask = known.get(ranks);
    if (mask === undefined) {
      mask = 0;
      for (let rank = 0; rank < plan.worldSize; rank++)
        if (ranks & (1 << rank)) mask |= 1 << plan.topology.domainOf(rank);
      known.set(ranks, mask);
    }
    return mask;
  };
  let [lowerBound, interDomain] = [0, 0];
  const bytesOf = new Map(
    plan.tensors.map(({ name, destinationDType }) => [name, dtypeBytes(destinationDType)]),
  );
  for (const [name, wanted] of want) {
    const sources = have.get(name)!;
    wanted.forEach((ranks, element) => {
      const bytes = bytesOf.get(name)!;
      lowerBound += bytes * bitCount(ranks & ~sources[element]!);
      interDomain += bytes * bitCount(domains(ranks) & ~domains(sources[element]!));
    });
  }
  return { lowerBound, interDomain };
}

function bitCount(mask: number): number {
  let count = 0;
  for (let rest = mask; rest !== 0; rest &= rest - 1) count++;
  return count;
}

/** A world of domains and rails; `perDevice` ranks share a GPU. */
export function cluster(ranks: number, domainSize: number, rails: number, perDevice = 1): Topology {
  return topology({
    ranks: Array.from({ length: ranks }, (_, rank) => {
      const device = Math.floor(rank / perDevice);
      const domain = Math.floor(device / domainSize);
      return { node: domain, domain, rail: device % rails, device: device % domainSize };
    }),
  });
}
