// SPDX-License-Identifier: Apache-2.0
// Reshards tensors in one call: plan (cached), prepare, move, wait.

import type { BufferRange, Communicator, DeviceBuffer, Layout, Stream } from '@nccl-ext/core';
import { backendOf, requireKnownOptions, requireObject } from '@nccl-ext/core/extend';
import { createPlan } from '../plan/create-plan.js';
import type { TransferPlan } from '../plan/transfer-plan.js';
import type { Bindings } from './bind-tensors.js';
import { type PrepareOptions, prepareWith } from './prepare-transfer.js';
import { requireStream } from './require-stream.js';

/** One side of a tensor on this rank; `memory` is needed on the ranks of the layout's mesh only. */
export interface ReshardSide {
  readonly layout: Layout;
  readonly memory?: DeviceBuffer | BufferRange | undefined;
}

export interface ReshardTensor {
  readonly source: ReshardSide;
  readonly destination: ReshardSide;
}

export interface ReshardOptions {
  /** Where the move runs; by default a stream of its own. */
  readonly stream?: Stream | undefined;
  /** As in `prepareTransfer`. */
  readonly verify?: boolean;
}

/**
 * Collective: moves tensors (a name for each, layouts on every rank, memory where a rank takes part) and resolves when this rank's part is
 * done. Equal calls reuse their plan; a program that moves the same memory again and again keeps a prepared transfer instead
 * (`createPlan`, `prepareTransfer`).
 *
 * @throws what `createPlan`, `prepareTransfer` and `stream.synchronize` throw; ERR_RANK_LOST on the other ranks when one refuses.
 * @example
 * ```ts
 * await reshard(comm, {
 *   weight: { source: { layout: rows, memory: trainerBuffer }, destination: { layout: columns, memory: engineBuffer } },
 * });
 * ```
 */
export async function reshard(
  communicator: Communicator,
  tensors: Readonly<Record<string, ReshardTensor>>,
  options: ReshardOptions = {},
): Promise<void> {
  backendOf(communicator); // refuses what is no communicator
  const own: Stream[] = [];
  const streamOf = (): Stream => options.stream ?? own[0]!;
  try {
    const transfer = await prepareWith(communicator, () => {
      const asked = askedOf(communicator, tensors, options);
      if (options.stream === undefined) own.push(communicator.createStream());
      requireStream(streamOf(), communicator);
      return asked;
    });
    try {
      transfer.enqueue(streamOf());
      await streamOf().synchronize();
    } finally {
      await transfer.dispose();
    }
  } finally {
    for (const stream of own) await stream.dispose();
  }
}

/** The plan and the memory that the arguments mean. */
function askedOf(
  { size, topology }: Communicator,
  tensors: Readonly<Record<string, ReshardTensor>>,
  options: ReshardOptions,
): { readonly plan: TransferPlan; readonly options: PrepareOptions } {
  requireObject('tensors', tensors);
  requireObject('options', options);
  requireKnownOptions(options, ['stream', 'verify'] satisfies (keyof ReshardOptions)[]);
  const entries = Object.entries(tensors);
  for (const [name, tensor] of entries) {
    requireObject(`tensors.${name}`, tensor);
    requireObject(`tensors.${name}.source`, tensor.source);
    requireObject(`tensors.${name}.destination`, tensor.destination);
  }
  const plan = createPlan({
    worldSize: size,
    topology,
    tensors: entries.map(([name, { source, destination }]) => ({
      name,
      source: source.layout,
      destination: destination.layout,
    })),
  });
  const sources = bindingsOf(entries, 'source');
  const destinations = bindingsOf(entries, 'destination');
  return { plan, options: { sources, destinations, verify: options.verify ?? false } };
}

function bindingsOf(
  entries: readonly (readonly [string, ReshardTensor])[],
  side: keyof ReshardTensor,
): Bindings {
  return Object.fromEntries(
    entries.flatMap(([name, tensor]) => {
      const { memory } = tensor[side];
      return memory === undefined ? [] : [[name, memory]];
    }),
  );
}
