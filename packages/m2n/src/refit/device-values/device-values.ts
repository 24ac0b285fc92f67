// SPDX-License-Identifier: Apache-2.0
// Values that are made and compared on the GPUs: a model of 60 GB takes them a fraction of a second, and the host minutes.

import { type Communicator, type DeviceBuffer, type Kernel, NcclExtError, param } from '@nccl-ext/core';
import type { TransferPlan } from '../../plan/transfer-plan.js';
import { checkDestinations } from '../check-destinations.js';
import { hostAccess } from '../host-access.js';
import type { RankMemory } from '../rank-memory.js';
import type { ShardValues, ShardWork } from '../shard-values.js';
import type { StorageArena } from '../storage-arena.js';
import type { GeneratedTensor, ValueSource } from '../values.js';
import { type BoxTable, boxTable } from './box-table.js';
import { valuesPtx } from './generated/values-ptx.js';

const block = 256;
/** Blocks per SM: more than run at once, so that none of them idles at the end. */
const blocksPerSm = 16;
const tilesPerBlock = block / 32;

/** A source whose values are a function of tensor and index. */
export type GeneratedSource = ValueSource & {
  readonly generated: (tensor: string) => GeneratedTensor;
};

/** Values of `source`, which every rank's GPU makes for itself. */
export function deviceValues(plan: TransferPlan, source: GeneratedSource): ShardValues {
  const kernels = new Map<Communicator, Promise<ValueKernels>>();
  const kernelsOf = (rank: RankMemory): Promise<ValueKernels> => {
    const { communicator } = rank;
    const loaded = kernels.get(communicator) ?? ValueKernels.load(rank);
    kernels.set(communicator, loaded);
    return loaded;
  };
  return {
    name: `${source.name}, made on the GPUs`,
    async load(ranks, work) {
      await onAll(
        ranks,
        work,
        ({ sources }) => sources,
        async (rank) => {
          await (await kernelsOf(rank)).write(rank.sources, source);
        },
      );
    },
    async check(ranks, work) {
      await onAll(
        ranks,
        work,
        ({ destinations }) => destinations,
        async (rank) => {
          const { bytes, first } = await (await kernelsOf(rank)).compare(rank.destinations, source);
          if (bytes > 0n) await throwDifference(rank, plan, source, bytes, Number(first));
        },
      );
    },
  };
}

/** All ranks at once. */
async function onAll(
  ranks: readonly RankMemory[],
  { onBytes, signal }: ShardWork,
  arenaOf: (rank: RankMemory) => StorageArena,
  step: (rank: RankMemory) => Promise<void>,
): Promise<void> {
  signal?.throwIfAborted();
  await Promise.all(
    ranks.map(async (rank) => {
      const { held, bytes } = arenaOf(rank);
      if (held.length > 0) await step(rank);
      onBytes(bytes);
    }),
  );
}

/** The kernels on one rank, and the memory that they need besides the shards. */
class ValueKernels {
  readonly #rank: RankMemory;
  readonly #write: Kernel;
  readonly #compare: Kernel;
  readonly #found: DeviceBuffer;
  #tables = new Map<StorageArena, { readonly buffer: DeviceBuffer; readonly table: BoxTable }>();

  static async load(rank: RankMemory): Promise<ValueKernels> {
    const module = await rank.communicator.loadModule(new TextEncoder().encode(valuesPtx));
    return new ValueKernels(rank, module.kernel('write_values'), module.kernel('compare_values'));
  }

  private constructor(rank: RankMemory, write: Kernel, compare: Kernel) {
    this.#rank = rank;
    this.#write = write;
    this.#compare = compare;
    this.#found = rank.communicator.allocate(16, 'plain');
  }

  async write(arena: StorageArena, source: GeneratedSource): Promise<void> {
    await this.#launch(this.#write, arena, source, []);
  }

  /** Bytes that differ, and the place of the first of them in the arena. */
  async compare(
    arena: StorageArena,
    source: GeneratedSource,
  ): Promise<{ readonly bytes: bigint; readonly first: bigint }> {
    const { stream } = this.#rank;
    const found = new BigUint64Array([0n, 2n ** 64n - 1n]);
    stream.upload(this.#found, found);
    await this.#launch(this.#compare, arena, source, [this.#found]);
    stream.download(found, this.#found);
    await stream.synchronize();
    return { bytes: found[0]!, first: found[1]! };
  }

  async #launch(
    kernel: Kernel,
    arena: StorageArena,
    source: GeneratedSource,
    more: readonly DeviceBuffer[],
  ): Promise<void> {
    const { stream, communicator } = this.#rank;
    const { buffer, table } = await this.#tableOf(arena, source);
    if (table.boxes === 0) return;
    const most = Math.max(1, communicator.device.multiprocessors) * blocksPerSm;
    kernel.launch(stream, {
      grid: Math.min(most, Math.ceil(table.tiles / tilesPerBlock)),
      block,
      parameters: [arena.buffer!, buffer, param.u32(table.boxes), param.u64(table.tiles), ...more],
    });
    await stream.synchronize();
  }

  /** Made once per arena: repeats compare the same memory. */
  async #tableOf(
    arena: StorageArena,
    source: GeneratedSource,
  ): Promise<{ readonly buffer: DeviceBuffer; readonly table: BoxTable }> {
    const known = this.#tables.get(arena);
    if (known !== undefined) return known;
    const table = boxTable(arena, source.generated);
    const buffer = this.#rank.communicator.allocate(table.bytes.length, 'plain');
    this.#rank.stream.upload(buffer, table.bytes);
    await this.#rank.stream.synchronize();
    const made = { buffer, table };
    this.#tables.set(arena, made);
    return made;
  }
}

/** Has the host find the element, in the storage that the GPU named. */
async function throwDifference(
  { communicator, stream, destinations }: RankMemory,
  plan: TransferPlan,
  source: ValueSource,
  bytes: bigint,
  first: number,
): Promise<never> {
  const { rank } = communicator;
  const { bindings } = destinations;
  const held = destinations.held.filter(({ storage, requiredBytes }) => {
    const { byteOffset = 0 } = bindings[storage]!;
    return first >= byteOffset && first < byteOffset + requiredBytes;
  });
  try {
    const sourceDType = (tensor: number) => plan.tensors[tensor]!.sourceDType;
    const access = hostAccess(stream);
    await checkDestinations(rank, { held, bindings }, access, source, sourceDType, () => {}, undefined);
  } catch (error) {
    if (!(error instanceof NcclExtError) || error.code !== 'ERR_VERIFY') throw error;
    const { field = '', expected, seen } = error;
    throw new NcclExtError('ERR_VERIFY', `${error.message} In all ${bytes} bytes of the rank differ.`, {
      rank,
      field,
      op: 'refit',
      expected,
      seen,
      cause: error,
    });
  }
  throw new NcclExtError(
    'ERR_INTERNAL',
    `Rank ${rank}: the GPU found ${bytes} bytes that differ, the first at byte ${first} of its destinations; the host found none.`,
    { rank, op: 'refit' },
  );
}
