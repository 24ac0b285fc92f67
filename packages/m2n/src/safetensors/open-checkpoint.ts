// SPDX-License-Identifier: Apache-2.0
// Opens a checkpoint of one or many safetensors files and reads parts of its tensors without ever holding the whole.

import { stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type DimRuns, type DType, NcclExtError } from '@nccl-ext/core';
import { requireText } from '@nccl-ext/core/extend';
import { checkpointError, checkpointPathError } from './checkpoint-error.js';
import { readIndex } from './index-file.js';
import { BounceBuffers, readRuns } from './read-runs.js';
import { openShard, type ShardFile } from './shard-file.js';

/** One tensor of a checkpoint. */
export interface CheckpointTensor {
  readonly name: string;
  readonly dtype: DType;
  /** In elements of `dtype`. */
  readonly shape: readonly number[];
  /** The file that has it. */
  readonly file: string;
  /** Byte range in that file. */
  readonly begin: number;
  readonly end: number;
}

/** An open checkpoint; every header was checked. Reads may run side by side. */
export interface Checkpoint {
  /** The file or index it was opened by. */
  readonly path: string;
  readonly files: readonly string[];
  readonly tensors: ReadonlyMap<string, CheckpointTensor>;
  /** The `__metadata__` of all files; the first file that has a key wins. */
  readonly metadata: Readonly<Record<string, string>>;
  /** Fills `target` with the bytes of a tensor from `byteStart` on. `target` may lie in shared memory. */
  readInto(name: string, byteStart: number, target: Uint8Array): Promise<void>;
  /** Fills `target` with what `runs`, one per dimension, hold of a tensor: dense, row-major, in local order. */
  readSlice(name: string, runs: readonly DimRuns[], target: Uint8Array): Promise<void>;
  /** Closes the files; reads under way must have ended. */
  dispose(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

const indexName = 'model.safetensors.index.json';
const singleName = 'model.safetensors';

/**
 * Opens `path`: a `.safetensors` file, an index (`.json`), or a folder with `model.safetensors.index.json` or
 * `model.safetensors`. Reads and checks every header, and no data.
 *
 * @throws ERR_CHECKPOINT naming the file, the tensor and what is wrong.
 * @example
 * ```ts
 * const checkpoint = await openCheckpoint('model.safetensors');
 * try {
 *   const { shape, begin, end } = checkpoint.tensors.get('lm_head.weight')!;
 *   const bytes = new Uint8Array(end - begin);
 *   await checkpoint.readInto('lm_head.weight', 0, bytes);
 * } finally {
 *   await checkpoint.dispose();
 * }
 * ```
 */
export async function openCheckpoint(path: string): Promise<Checkpoint> {
  requireText('path', path);
  const file = await fileOf(path);
  if (!file.endsWith('.json')) return new OpenCheckpoint(file, [await openShard(file)]);
  const index = await readIndex(file);
  const shards = await openShards(file, new Set(index.values()));
  try {
    requireAgreement(file, index, shards);
    return new OpenCheckpoint(file, [...shards.values()]);
  } catch (error) {
    await closeAll(shards.values());
    throw error;
  }
}

async function fileOf(path: string): Promise<string> {
  const kind = await kindOf(path);
  if (kind === undefined) throw checkpointPathError(path, 'does not exist', 'Check the path.');
  if (kind === 'file') return path;
  for (const name of [indexName, singleName]) {
    if ((await kindOf(join(path, name))) === 'file') return join(path, name);
  }
  throw checkpointPathError(
    path,
    `is a folder without ${indexName} or ${singleName}`,
    'Check the path, or name a .safetensors file in it.',
  );
}

async function kindOf(path: string): Promise<'file' | 'folder' | undefined> {
  const stats = await stat(path).catch(() => undefined);
  if (stats === undefined) return undefined;
  return stats.isDirectory() ? 'folder' : 'file';
}

async function openShards(index: string, names: ReadonlySet<string>): Promise<Map<string, ShardFile>> {
  const shards = new Map<string, ShardFile>();
  try {
    for (const name of names) shards.set(name, await openShard(join(dirname(index), name)));
    return shards;
  } catch (error) {
    await closeAll(shards.values());
    throw error;
  }
}

async function closeAll(shards: Iterable<ShardFile>): Promise<void> {
  await Promise.all(Array.from(shards, (shard) => shard.close()));
}

/** The index and the headers must name the same tensors in the same files. */
function requireAgreement(
  path: string,
  index: ReadonlyMap<string, string>,
  shards: ReadonlyMap<string, ShardFile>,
): void {
  const seen = new Map<string, string>();
  for (const [file, shard] of shards) {
    for (const { name } of shard.header.tensors) {
      const other = seen.get(name);
      if (other !== undefined) throw checkpointError(path, name, `is in two files: ${other} and ${file}`);
      seen.set(name, file);
    }
  }
  for (const [name, file] of index) {
    const found = seen.get(name);
    if (found === file) continue;
    const problem =
      found === undefined ? `is not in its file ${file}` : `is in ${found}, not in ${file} as the index says`;
    throw checkpointError(path, name, problem);
  }
  for (const [name, file] of seen) {
    if (!index.has(name)) throw checkpointError(path, name, `is in ${file}, but not in the index`);
  }
}

class OpenCheckpoint implements Checkpoint {
  readonly path: string;
  readonly files: readonly string[];
  readonly tensors: ReadonlyMap<string, CheckpointTensor>;
  readonly metadata: Readonly<Record<string, string>>;
  readonly #shards: ReadonlyMap<string, ShardFile>;
  readonly #bounce: BounceBuffers = new BounceBuffers();
  #disposed = false;

  constructor(path: string, shards: readonly ShardFile[]) {
    this.path = path;
    this.files = shards.map((shard) => shard.path);
    this.#shards = new Map(shards.map((shard) => [shard.path, shard]));
    this.metadata = Object.assign({}, ...shards.map((shard) => shard.header.metadata).reverse());
    this.tensors = new Map(
      shards.flatMap(({ path: file, dataStart, header }) =>
        header.tensors.map((tensor) => [
          tensor.name,
          { ...tensor, file, begin: dataStart + tensor.begin, end: dataStart + tensor.end },
        ]),
      ),
    );
  }

  async readInto(name: string, byteStart: number, target: Uint8Array): Promise<void> {
    const { tensor, shard } = this.#find(name);
    const bytes = tensor.end - tensor.begin;
    if (!Number.isSafeInteger(byteStart) || byteStart < 0 || byteStart + target.length > bytes) {
      throw new NcclExtError(
        'ERR_OUT_OF_BOUNDS',
        `byteStart ${byteStart} and ${target.length} bytes lie outside tensor ${JSON.stringify(name)} of ${bytes} bytes`,
        { field: 'byteStart', expected: bytes, seen: byteStart },
      );
    }
    await shard.read(target, tensor.begin + byteStart);
  }

  async readSlice(name: string, runs: readonly DimRuns[], target: Uint8Array): Promise<void> {
    const { tensor, shard } = this.#find(name);
    await readRuns({ shard, tensor, runs, target, bounce: this.#bounce });
  }

  async dispose(): Promise<void> {
    if (this.#disposed) return;
    this.#disposed = true;
    await closeAll(this.#shards.values());
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.dispose();
  }

  #find(name: string): { tensor: CheckpointTensor; shard: ShardFile } {
    if (this.#disposed) throw new NcclExtError('ERR_DISPOSED', `the checkpoint ${this.path} was disposed`);
    const tensor = this.tensors.get(name);
    if (tensor === undefined) {
      const problem = `the checkpoint ${this.path} has no tensor ${JSON.stringify(name)}`;
      throw new NcclExtError('ERR_INVALID_ARGUMENT', problem, { field: 'name', seen: name });
    }
    return { tensor, shard: this.#shards.get(tensor.file)! };
  }
}
