// SPDX-License-Identifier: Apache-2.0
// Reads the patterns and the tensor list of a stored plan.

import { dimRuns, NcclExtError } from '@nccl-ext/core';
import type { PlannedTensor } from '../executable-plan.js';
import type { SideCopy } from '../plan-request.js';
import { type SidePattern, sidePattern } from '../side-pattern.js';
import type { PlanEnvelope } from './plan-schema.js';
import { malformed, readRanks } from './read-moves.js';

/** @throws ERR_INVALID_ARGUMENT naming the entry at fault. */
export function readTensors({ patterns, tensors, worldSize }: PlanEnvelope): readonly PlannedTensor[] {
  const known = patterns.map((pattern, i) => readPattern(pattern, `patterns[${i}]`, worldSize));
  let request = -1;
  // Not `map`, which steps over holes.
  return Array.from(tensors, (value, i) => {
    const field = `tensors[${i}]`;
    const { name, slot, source, destination } = asRecord(value, field);
    if (typeof name !== 'string') throw malformed(`${field}.name`, 'must be a string');
    if (typeof slot !== 'number' || !Number.isInteger(slot) || slot < 0) {
      throw malformed(`${field}.slot`, 'must be an integer from 0');
    }
    if (slot === 0) request++;
    const sources = readCopies(source, `${field}.source`, known);
    const destinations = readCopies(destination, `${field}.destination`, known);
    const { shape, dtype } = sources[0]!.pattern;
    const destinationDType = destinations[0]!.pattern.dtype;
    return { name, request, slot, shape, sourceDType: dtype, destinationDType, sources, destinations };
  });
}

function readPattern(
  { dtype, shape, parts }: PlanEnvelope['patterns'][number],
  field: string,
  worldSize: number,
): SidePattern {
  try {
    return sidePattern({
      dtype,
      shape,
      parts: parts.map(({ dims, ranks, byteOffset, byteStrides }, i) => ({
        dims: dims.map((runs) =>
          dimRuns(
            runs.map(([start, length, stride, count]) => ({
              start: start!,
              length: length!,
              stride: stride!,
              count: count!,
            })),
          ),
        ),
        ranks: readRanks(ranks, `${field}.parts[${i}].ranks`, worldSize),
        byteOffset,
        byteStrides,
      })),
    });
  } catch (error) {
    if (!NcclExtError.is(error, 'ERR_LAYOUT')) throw error;
    throw malformed(`${field}.${error.field}`, `does not fit: ${error.message}`);
  }
}

function readCopies(value: unknown, field: string, patterns: readonly SidePattern[]): readonly SideCopy[] {
  if (!Array.isArray(value) || value.length === 0)
    throw malformed(field, 'must be an array of at least one copy');
  return Array.from(value, (entry, i) => {
    const { pattern, storage } = asRecord(entry, `${field}[${i}]`);
    const known = patterns[pattern as number];
    if (!known)
      throw malformed(`${field}[${i}].pattern`, `must be a number from 0 to ${patterns.length - 1}`);
    if (typeof storage !== 'string') throw malformed(`${field}[${i}].storage`, 'must be a string');
    return { pattern: known, storage };
  });
}

function asRecord(value: unknown, field: string): Readonly<Record<string, unknown>> {
  if (typeof value === 'object' && value !== null && !Array.isArray(value))
    return value as Record<string, unknown>;
  throw malformed(field, 'must be an object');
}
