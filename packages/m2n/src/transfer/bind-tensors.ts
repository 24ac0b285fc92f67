// SPDX-License-Identifier: Apache-2.0
// From storage names to memory, checked: everything bound, large enough, aligned, and no destination shares bytes with anything.

import { type BufferRange, type Communicator, DeviceBuffer, dtypeBytes, NcclExtError } from '@nccl-ext/core';
import type { TensorBindings } from '@nccl-ext/core/contract';
import { bufferHandleOf, describe, requireObject } from '@nccl-ext/core/extend';
import type { ExecutablePlan } from '../plan/executable-plan.js';
import type { HeldTensor } from '../plan/held-tensors.js';

/** Memory by storage name; a buffer stands for its whole range. */
export type Bindings = Readonly<Record<string, DeviceBuffer | BufferRange>>;

type Side = 'source' | 'destination';

/** The bytes of one storage that a plan touches. */
interface Claim {
  readonly side: Side;
  readonly storage: string;
  readonly buffer: DeviceBuffer;
  readonly start: number;
  readonly end: number;
}

/** The bindings of every tensor of the plan on this rank, in the contract's form. */
export function bindTensors(
  communicator: Communicator,
  plan: ExecutablePlan,
  sources: Bindings,
  destinations: Bindings,
): { readonly sources: TensorBindings; readonly destinations: TensorBindings } {
  const { rank } = communicator;
  const claims = new Map<string, Claim>();
  const bound = {
    sources: bindSide(communicator, plan, 'source', plan.sourceTensorsOf(rank), sources, claims),
    destinations: bindSide(
      communicator,
      plan,
      'destination',
      plan.destinationTensorsOf(rank),
      destinations,
      claims,
    ),
  };
  rejectOverlap(rank, [...claims.values()]);
  return bound;
}

function bindSide(
  communicator: Communicator,
  plan: ExecutablePlan,
  side: Side,
  held: readonly HeldTensor[],
  bindings: Bindings,
  claims: Map<string, Claim>,
): TensorBindings {
  const buffer = new Float64Array(plan.tensors.length);
  const byteOffset = new Float64Array(plan.tensors.length);
  for (const tensor of held) {
    const claim = claimOf(communicator, side, tensor, bindings);
    const key = `${side} ${tensor.storage}`;
    const before = claims.get(key);
    claims.set(key, before === undefined || before.end < claim.end ? claim : before);
    buffer[tensor.tensor] = bufferHandleOf(claim.buffer);
    byteOffset[tensor.tensor] = claim.start;
  }
  return { buffer, byteOffset };
}

function claimOf(communicator: Communicator, side: Side, tensor: HeldTensor, bindings: Bindings): Claim {
  const { rank } = communicator;
  const { storage, requiredBytes } = tensor;
  const where = `${side}s[${JSON.stringify(storage)}] of rank ${rank}`;
  requireObject(`${side}s`, bindings);
  const binding: unknown = Object.hasOwn(bindings, storage) ? bindings[storage] : undefined;
  if (binding === undefined) {
    throw new NcclExtError(
      'ERR_INVALID_ARGUMENT',
      `${where} is not bound; the plan needs ${requiredBytes} bytes there.`,
      {
        rank,
        field: storage,
        help: `Pass ${side}s: { ${JSON.stringify(storage)}: buffer }; plan.${side}TensorsOf(${rank}) lists what a rank binds.`,
      },
    );
  }
  const { buffer, byteOffset = 0 } = rangeOf(binding, where);
  if (buffer.communicator !== communicator) {
    throw new NcclExtError(
      'ERR_FOREIGN_OBJECT',
      `${where} is a buffer of rank ${buffer.communicator.rank} of another communicator.`,
      {
        rank,
        field: storage,
      },
    );
  }
  const elementBytes = dtypeBytes(tensor.dtype);
  if (!Number.isSafeInteger(byteOffset) || byteOffset < 0 || byteOffset % elementBytes !== 0) {
    throw new NcclExtError(
      'ERR_INVALID_ARGUMENT',
      `byteOffset of ${where} must be a non-negative multiple of ${elementBytes} (${tensor.dtype}), not ${describe(byteOffset)}.`,
      { rank, field: storage, seen: byteOffset },
    );
  }
  const end = byteOffset + requiredBytes;
  if (end > buffer.bytes) {
    throw new NcclExtError(
      'ERR_OUT_OF_BOUNDS',
      `${where} is too small: tensor ${tensor.name} needs bytes ${byteOffset} to ${end}, the buffer has ${buffer.bytes}.`,
      { rank, field: storage, expected: end, seen: buffer.bytes },
    );
  }
  return { side, storage, buffer, start: byteOffset, end };
}

function rangeOf(binding: unknown, where: string): BufferRange {
  if (binding instanceof DeviceBuffer) return { buffer: binding };
  const range = binding as Partial<BufferRange> | null;
  if (range?.buffer instanceof DeviceBuffer) return range as BufferRange;
  throw new NcclExtError(
    'ERR_INVALID_ARGUMENT',
    `${where} must be a buffer or { buffer, byteOffset }, got ${describe(binding)}.`,
    { field: where, help: 'Make buffers with communicator.allocate.' },
  );
}

/** Sources may share bytes with each other; a destination shares them with nothing. */
function rejectOverlap(rank: number, claims: readonly Claim[]): void {
  for (const group of groupByBuffer(claims).values()) {
    const sorted = group.filter((claim) => claim.end > claim.start).sort((a, b) => a.start - b.start);
    let reach: { readonly source?: Claim | undefined; readonly destination?: Claim | undefined } = {};
    for (const claim of sorted) {
      const clash =
        overlapping(reach.destination, claim) ??
        (claim.side === 'destination' ? overlapping(reach.source, claim) : undefined);
      if (clash !== undefined) throw overlapError(rank, clash, claim);
      const furthest = reach[claim.side];
      if (furthest === undefined || furthest.end < claim.end) reach = { ...reach, [claim.side]: claim };
    }
  }
}

function overlapping(earlier: Claim | undefined, claim: Claim): Claim | undefined {
  return earlier !== undefined && earlier.end > claim.start ? earlier : undefined;
}

function groupByBuffer(claims: readonly Claim[]): Map<DeviceBuffer, Claim[]> {
  const groups = new Map<DeviceBuffer, Claim[]>();
  for (const claim of claims) {
    const group = groups.get(claim.buffer);
    if (group === undefined) groups.set(claim.buffer, [claim]);
    else group.push(claim);
  }
  return groups;
}

function overlapError(rank: number, a: Claim, b: Claim): NcclExtError {
  const show = (claim: Claim): string =>
    `${claim.side} ${claim.storage} (bytes ${claim.start} to ${claim.end})`;
  return new NcclExtError(
    'ERR_OVERLAP',
    `On rank ${rank}, ${show(a)} and ${show(b)} share bytes of one buffer.`,
    {
      rank,
      field: b.storage,
      help: 'Give every destination bytes of its own. Tensors that are one memory on purpose (tied weights) are one storage in the plan.',
    },
  );
}
