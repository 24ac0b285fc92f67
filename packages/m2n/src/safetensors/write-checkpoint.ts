// SPDX-License-Identifier: Apache-2.0
// Writes a safetensors file from streams of bytes; it appears under its name only when it is complete.

import { randomUUID } from 'node:crypto';
import { type FileHandle, open, rename, rm } from 'node:fs/promises';
import { type DType, dtypeBytes, NcclExtError } from '@nccl-ext/core';
import { describe, requireArray, requireObject, requireText } from '@nccl-ext/core/extend';
import { safetensorsNames } from './dtype-names.js';
import { maxIoBytes } from './shard-file.js';

/** One tensor to write. */
export interface CheckpointEntry {
  readonly name: string;
  readonly dtype: DType;
  /** In elements of `dtype`. */
  readonly shape: readonly number[];
  /** Its bytes, row-major, in chunks of any size; asked for one after another, and only when it is this tensor's turn. */
  readonly data: Iterable<Uint8Array> | AsyncIterable<Uint8Array>;
}

export interface WriteCheckpointOptions {
  /** The `__metadata__` of the file. */
  readonly metadata?: Readonly<Record<string, string>>;
}

/**
 * Writes `entries`, in their order, to `path`. The entries are collected first, since the header stands in front; their
 * data are streamed. Returns the size of the file.
 *
 * @throws ERR_INVALID_ARGUMENT when a name occurs twice or the data of a tensor have another size than its shape; then, as
 * after any failure, `path` is as it was.
 * @example
 * ```ts
 * const data = [new Uint8Array(4 * 1024)];
 * await writeCheckpoint('x.safetensors', [{ name: 'x', dtype: 'f32', shape: [4, 256], data }]);
 * ```
 */
export async function writeCheckpoint(
  path: string,
  entries: Iterable<CheckpointEntry> | AsyncIterable<CheckpointEntry>,
  options: WriteCheckpointOptions = {},
): Promise<number> {
  requireText('path', path);
  requireIterable(entries);
  const list: CheckpointEntry[] = [];
  for await (const entry of entries) list.push(requireEntry(entry, list.length));
  const header = headerOf(list, options.metadata);
  const temporary = `${path}.${randomUUID()}.tmp`;
  const handle = await open(temporary, 'wx');
  try {
    let written = await writeAll(handle, header);
    for (const entry of list) written += await writeEntry(handle, entry);
    await handle.sync();
    await handle.close();
    await rename(temporary, path);
    return written;
  } catch (error) {
    await handle.close().catch(() => undefined);
    await rm(temporary, { force: true });
    throw error;
  }
}

function requireIterable(entries: unknown): void {
  const iterable =
    typeof entries === 'object' &&
    entries !== null &&
    (Symbol.iterator in entries || Symbol.asyncIterator in entries);
  if (iterable) return;
  throw new NcclExtError(
    'ERR_INVALID_ARGUMENT',
    `entries must be an array or another iterable of { name, dtype, shape, data }, got ${describe(entries)}`,
    { field: 'entries' },
  );
}

function requireEntry(entry: CheckpointEntry, index: number): CheckpointEntry {
  const field = `entries[${index}]`;
  requireObject(field, entry);
  requireText(`${field}.name`, entry.name);
  requireArray(`${field}.shape`, entry.shape);
  return entry;
}

function bytesOf({ shape, dtype }: CheckpointEntry): number {
  return shape.reduce((product, extent) => product * extent, dtypeBytes(dtype));
}

function headerOf(
  entries: readonly CheckpointEntry[],
  metadata?: Readonly<Record<string, string>>,
): Uint8Array {
  const header = new Map<string, unknown>();
  if (metadata !== undefined) header.set('__metadata__', metadata);
  let begin = 0;
  for (const entry of entries) {
    const { name, dtype, shape } = entry;
    if (name === '__metadata__' || header.has(name))
      throw invalid(name, 'the name occurs twice or is reserved');
    const bytes = bytesOf(entry);
    if (!Number.isSafeInteger(bytes) || shape.some((extent) => !Number.isInteger(extent) || extent < 0)) {
      throw invalid(name, `shape [${shape.join(', ')}] must consist of whole numbers`);
    }
    if (dtype === 'f4e2m1x2' && shape.length === 0)
      throw invalid(name, 'packed f4 needs at least one dimension');
    const fileShape = dtype === 'f4e2m1x2' ? [...shape.slice(0, -1), shape.at(-1)! * 2] : shape;
    header.set(name, {
      dtype: safetensorsNames[dtype],
      shape: fileShape,
      data_offsets: [begin, begin + bytes],
    });
    begin += bytes;
  }
  // Spaces after the JSON keep the data aligned to 8 bytes.
  const json = new TextEncoder().encode(
    `{${[...header].map(([k, v]) => `${JSON.stringify(k)}:${JSON.stringify(v)}`)}}`,
  );
  const length = Math.ceil(json.length / 8) * 8;
  const bytes = new Uint8Array(8 + length).fill(0x20);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(length), true);
  bytes.set(json, 8);
  return bytes;
}

async function writeEntry(handle: FileHandle, entry: CheckpointEntry): Promise<number> {
  const expected = bytesOf(entry);
  let written = 0;
  for await (const chunk of entry.data) {
    written += chunk.length;
    if (written > expected) break;
    await writeAll(handle, chunk);
  }
  if (written === expected) return written;
  const seen = written > expected ? `more than ${expected}` : `${written}`;
  throw invalid(
    entry.name,
    `its data have ${seen} bytes, shape [${entry.shape.join(', ')}] needs ${expected}`,
  );
}

async function writeAll(handle: FileHandle, bytes: Uint8Array): Promise<number> {
  let done = 0;
  while (done < bytes.length) {
    const wanted = Math.min(bytes.length - done, maxIoBytes);
    done += (await handle.write(bytes, done, wanted)).bytesWritten;
  }
  return done;
}

function invalid(name: string, problem: string): NcclExtError {
  return new NcclExtError('ERR_INVALID_ARGUMENT', `entry ${JSON.stringify(name)}: ${problem}`, {
    field: name,
  });
}
