// SPDX-License-Identifier: Apache-2.0
// Opens one safetensors file, checks its header against its size and reads byte ranges of it.

import { type FileHandle, open } from 'node:fs/promises';
import { checkpointError, checkpointPathError } from './checkpoint-error.js';
import { type Header, maxHeaderBytes, parseHeader } from './header.js';

/** One read or write of Node ends at 2^31 - 1 bytes; a power of two keeps the following ones aligned. */
export const maxIoBytes: number = 2 ** 30;

const lengthBytes = 8;

/** A safetensors file that is open for reading. */
export interface ShardFile {
  readonly path: string;
  readonly header: Header;
  /** Where the data begin in the file. */
  readonly dataStart: number;
  /** Fills `target` from byte `position` of the file. */
  read(target: Uint8Array, position: number): Promise<void>;
  close(): Promise<void>;
}

/** @throws ERR_CHECKPOINT when the file cannot be opened or its header is refused. */
export async function openShard(path: string): Promise<ShardFile> {
  let handle: FileHandle;
  try {
    handle = await open(path);
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException;
    const help =
      code === 'ENOENT'
        ? 'Check the path, and that every file of the checkpoint is there.'
        : 'Check its permissions.';
    throw checkpointPathError(path, `cannot be opened (${message})`, help, cause);
  }
  try {
    const { header, dataStart } = await readHeader(handle, path);
    const read = (target: Uint8Array, position: number): Promise<void> =>
      readFully(handle, path, target, position);
    return { path, header, dataStart, read, close: () => handle.close() };
  } catch (error) {
    await handle.close();
    throw error;
  }
}

async function readHeader(handle: FileHandle, path: string): Promise<{ header: Header; dataStart: number }> {
  const stats = await handle.stat();
  if (!stats.isFile()) throw checkpointPathError(path, 'is not a regular file', 'Check the path.');
  if (stats.size < lengthBytes) {
    throw checkpointError(
      path,
      undefined,
      `has ${stats.size} bytes, fewer than the 8 of the header's length`,
    );
  }
  const prefix = new Uint8Array(lengthBytes);
  await readFully(handle, path, prefix, 0);
  const length = new DataView(prefix.buffer).getBigUint64(0, true);
  if (length > BigInt(maxHeaderBytes)) {
    throw checkpointError(
      path,
      undefined,
      `the header claims ${length} bytes; the format allows ${maxHeaderBytes}`,
    );
  }
  const dataStart = lengthBytes + Number(length);
  if (dataStart > stats.size) {
    const problem = `the header claims ${length} bytes, but only ${stats.size - lengthBytes} follow its length`;
    throw checkpointError(path, undefined, problem);
  }
  const bytes = new Uint8Array(Number(length));
  await readFully(handle, path, bytes, lengthBytes);
  return { header: parseHeader(bytes, stats.size - dataStart, path), dataStart };
}

async function readFully(
  handle: FileHandle,
  path: string,
  target: Uint8Array,
  position: number,
): Promise<void> {
  let done = 0;
  while (done < target.length) {
    const wanted = Math.min(target.length - done, maxIoBytes);
    const { bytesRead } = await handle.read(target, done, wanted, position + done);
    if (bytesRead === 0) {
      throw checkpointError(
        path,
        undefined,
        `ends at byte ${position + done}; it became shorter after it was opened`,
      );
    }
    done += bytesRead;
  }
}
