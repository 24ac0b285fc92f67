// SPDX-License-Identifier: Apache-2.0
// Checks a request and brings it into the one form that decides a plan: numbered patterns and sides, tensors that name them, a digest.

import { Layout, linkClasses, NcclExtError, singleDomain, Topology } from '@nccl-ext/core';
import { describe, requireObject, requireText } from '@nccl-ext/core/extend';
import { DigestWriter } from './digest-writer.js';
import { NameSet } from './name-set.js';
import { patternOf } from './pattern-of-layout.js';
import { PatternTable } from './pattern-table.js';
import type { PlanRequest, SideCopy, TensorRequest } from './plan-request.js';
import { SidePattern } from './side-pattern.js';
import { checkWorldSize } from './world-size.js';

/** Raised when the same request gives other moves, so that ranks with different planners refuse each other. */
const plannerVersion = 1;

/** Names that are hashed at once. */
const batch = 4096;

/** The two sides of a tensor. */
export type SideField = 'source' | 'destination';

/** A request in columns: a model has 10^5 tensors, so nothing here is an object per tensor. */
export interface NormalisedRequest {
  readonly worldSize: number;
  readonly topology: Topology;
  readonly tensors: readonly TensorRequest[];
  /** Number of each tensor's source; equal for those that lie the same way. */
  readonly source: Int32Array;
  readonly destination: Int32Array;
  /** By that number, the copies of the first tensor that lies so. */
  readonly sides: readonly (readonly SideCopy[])[];
  readonly digest: string;
}

/** @throws ERR_INVALID_ARGUMENT for repeated names, sides without a copy and ranks outside the world; ERR_TOPOLOGY when ranks have no place. */
export function normaliseRequest(request: PlanRequest): NormalisedRequest {
  const tensors = [...request.tensors];
  tensors.forEach(requireTensor);
  const table = new SideTable();
  const source = new Int32Array(tensors.length);
  const destination = new Int32Array(tensors.length);
  const writer = new DigestWriter();
  const names = new NameSet(tensors);
  writer.text('{"names":[');
  const hashes = new Int32Array(batch);
  for (let start = 0; start < tensors.length; start += batch) {
    const end = Math.min(tensors.length, start + batch);
    if (start > 0) writer.text(',');
    writer.strings(
      tensors.slice(start, end).map(({ name }) => name),
      hashes,
    );
    for (let i = start; i < end; i++) {
      const first = names.add(i, hashes[i - start]!);
      if (first >= 0) throw repeated(tensors[i]!.name, first, i);
      source[i] = table.number(tensors[i]!, 'source', i);
      destination[i] = table.number(tensors[i]!, 'destination', i);
    }
  }
  const worldSize = checkWorldSize(request.worldSize, table.patterns.patterns, tensors);
  const topology = request.topology ?? singleDomain(worldSize);
  if (!(topology instanceof Topology)) {
    throw new NcclExtError('ERR_TOPOLOGY', `topology must be a Topology, got ${describe(topology)}.`, {
      field: 'topology',
      help: 'Make one with topology, presetTopology or topologyFor.',
    });
  }
  if (topology.size < worldSize) {
    throw new NcclExtError(
      'ERR_TOPOLOGY',
      `The topology describes ${topology.size} ranks, but the plan has ${worldSize}.`,
      {
        field: 'topology',
        expected: worldSize,
        seen: topology.size,
        help: 'Describe every rank of the world.',
      },
    );
  }
  writer.text('],"sources":[');
  writer.integers(source);
  writer.text('],"destinations":[');
  writer.integers(destination);
  writer.text(`],"storages":[${table.storages.join()}],"sides":[${table.texts.join()}],`);
  table.patterns.write(writer);
  writeTopology(writer, topology, worldSize);
  writer.text(`,"worldSize":${worldSize},"planner":${plannerVersion}}`);
  return { worldSize, topology, tensors, source, destination, sides: table.sides, digest: writer.digest() };
}

function requireTensor(tensor: TensorRequest, index: number): void {
  if (typeof tensor?.name === 'string' && isSide(tensor.source) && isSide(tensor.destination)) return;
  const field = `tensors[${index}]`;
  requireObject(field, tensor);
  requireText(`${field}.name`, tensor.name);
  const side = isSide(tensor.source) ? 'destination' : 'source';
  throw new NcclExtError(
    'ERR_INVALID_ARGUMENT',
    `${field}.${side} must be a layout or an array of { pattern, storage }, got ${describe(tensor[side])}.`,
    {
      field: `${field}.${side}`,
      help: 'Make layouts with layout(...), patterns with patternOf or sidePattern.',
    },
  );
}

function isSide(side: TensorRequest[SideField]): boolean {
  if (!isCopies(side)) return side instanceof Layout;
  return side.every((copy) => copy?.pattern instanceof SidePattern && typeof copy.storage === 'string');
}

/** The distinct copies of a side. */
export function copiesOf(tensor: TensorRequest, field: SideField): readonly SideCopy[] {
  const side = tensor[field];
  if (!isCopies(side)) return [{ pattern: patternOf(side), storage: tensor.name }];
  if (side.length === 1) return side;
  return side.filter(({ pattern, storage }, i) => {
    const first = side.findIndex(
      (copy) => copy.storage === storage && copy.pattern.text() === pattern.text(),
    );
    return first === i;
  });
}

/** Numbers patterns and sides by content, in order of first use. */
class SideTable {
  readonly patterns = new PatternTable();
  readonly sides: (readonly SideCopy[])[] = [];
  /** JSON per side: a pattern number, or pairs of pattern number and, among the storages of the side, storage number. */
  readonly texts: string[] = [];
  /** JSON per storage that is not called like its tensor: [tensor, side, copy, storage]. */
  readonly storages: string[] = [];
  readonly #several = new Map<string, number>();
  /** Sides of one copy by pattern number. */
  readonly #single: number[] = [];

  number(tensor: TensorRequest, field: SideField, index: number): number {
    const side = tensor[field];
    if (!isCopies(side)) return this.#one(patternOf(side), tensor, field);
    if (side.length === 1) {
      const { pattern, storage } = side[0]!;
      if (storage !== tensor.name) this.storages.push(JSON.stringify([index, field, 0, storage]));
      return this.#one(pattern, tensor, field);
    }
    return this.#many(tensor, field, index);
  }

  #one(pattern: SidePattern, tensor: TensorRequest, field: SideField): number {
    const number = this.patterns.number(pattern);
    let side = this.#single[number];
    if (side === undefined) {
      side = this.sides.push(copiesOf(tensor, field)) - 1;
      this.texts.push(`${number}`);
      this.#single[number] = side;
    }
    return side;
  }

  #many(tensor: TensorRequest, field: SideField, index: number): number {
    const copies = copiesOf(tensor, field);
    requireOneTensor(tensor.name, field, copies);
    copies.forEach(({ storage }, copy) => {
      if (storage !== tensor.name) this.storages.push(JSON.stringify([index, field, copy, storage]));
    });
    if (copies.length === 1) return this.#one(copies[0]!.pattern, tensor, field);
    const names = copies.map(({ storage }) => storage);
    const pairs = copies.map(
      ({ pattern, storage }) => `[${this.patterns.number(pattern)},${names.indexOf(storage)}]`,
    );
    const text = `[${pairs.join()}]`;
    let side = this.#several.get(text);
    if (side === undefined) {
      side = this.sides.push(copies) - 1;
      this.texts.push(text);
      this.#several.set(text, side);
    }
    return side;
  }
}

function isCopies(side: TensorRequest[SideField]): side is readonly SideCopy[] {
  return Array.isArray(side);
}

function requireOneTensor(name: string, field: SideField, copies: readonly SideCopy[]): void {
  const first = copies[0]?.pattern;
  if (!first)
    throw new NcclExtError('ERR_INVALID_ARGUMENT', `The tensor ${name} has no ${field} copy.`, { field });
  for (const { pattern } of copies) {
    if (pattern.shape.join() !== first.shape.join()) {
      throw new NcclExtError(
        'ERR_SHAPE_MISMATCH',
        `The ${field} copies of ${name} have the shapes [${first.shape.join(', ')}] and [${pattern.shape.join(', ')}].`,
        { field, expected: first.shape, seen: pattern.shape },
      );
    }
    if (pattern.dtype !== first.dtype) {
      throw new NcclExtError(
        'ERR_CAST',
        `The ${field} copies of ${name} have the dtypes ${first.dtype} and ${pattern.dtype}; copies of a side need one dtype.`,
        { field, expected: first.dtype, seen: pattern.dtype, help: 'Request them as two tensors.' },
      );
    }
  }
}

function repeated(name: string, first: number, index: number): NcclExtError {
  return new NcclExtError(
    'ERR_INVALID_ARGUMENT',
    `tensors[${index}] and tensors[${first}] are both called ${JSON.stringify(name)}; names must be distinct.`,
    { field: `tensors[${index}].name`, seen: name },
  );
}

function writeTopology(writer: DigestWriter, topology: Topology, worldSize: number): void {
  const column = (name: string, of: (rank: number) => number): void => {
    const values = new Int32Array(worldSize);
    for (let rank = 0; rank < worldSize; rank++) values[rank] = of(rank);
    writer.text(`"${name}":[`);
    writer.integers(values);
    writer.text('],');
  };
  writer.text(',"topology":{');
  column('node', (rank) => topology.nodeOf(rank));
  column('domain', (rank) => topology.domainOf(rank));
  column('rail', (rank) => topology.railOf(rank));
  column('device', (rank) => topology.deviceOf(rank));
  const links = linkClasses.map((name) => {
    const { bandwidthGBps, latencyUs } = topology.links[name];
    return [name, bandwidthGBps, latencyUs];
  });
  writer.text(`"links":${JSON.stringify(links)}}`);
}
