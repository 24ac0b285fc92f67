// SPDX-License-Identifier: Apache-2.0
// Checkpoints are written whole or not at all, read back as they were, and refused when they are cut or lie.

import { mkdir, readdir, readFile, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { bytesOf, entry, folder, useFolder } from './checkpoint-folder.test-util.js';
import { openCheckpoint } from './open-checkpoint.js';
import { type CheckpointEntry, writeCheckpoint } from './write-checkpoint.js';

useFolder();

describe('writeCheckpoint and openCheckpoint', () => {
  it('write and read back, streamed in chunks, also into shared memory', async () => {
    const path = join(folder, 'a.safetensors');
    const data = bytesOf(24);
    async function* chunks() {
      for (const [from, to] of [
        [0, 5],
        [5, 5],
        [5, 24],
      ])
        yield data.subarray(from, to);
    }
    const size = await writeCheckpoint(
      path,
      [
        { name: 'w', dtype: 'bf16', shape: [3, 4], data: chunks() },
        { name: 'packed', dtype: 'f4e2m1x2', shape: [2, 4], data: [bytesOf(8)] },
        entry('empty', [0, 4]),
        entry('scalar', []),
      ],
      { metadata: { format: 'pt' } },
    );
    expect(size).toBe((await readFile(path)).length);
    await using checkpoint = await openCheckpoint(path);
    expect(checkpoint.metadata).toEqual({ format: 'pt' });
    expect([...checkpoint.tensors].map(([name, { dtype, shape }]) => [name, dtype, shape])).toEqual([
      ['w', 'bf16', [3, 4]],
      ['packed', 'f4e2m1x2', [2, 4]],
      ['empty', 'u8', [0, 4]],
      ['scalar', 'u8', []],
    ]);
    expect(checkpoint.tensors.get('w')!.begin % 8).toBe(0);
    const shared = new Uint8Array(new SharedArrayBuffer(40), 8, 20);
    await checkpoint.readInto('w', 3, shared);
    expect([...shared]).toEqual([...data.subarray(3, 23)]);
    expect([...new Uint8Array(shared.buffer)].filter((byte, i) => byte !== 0 && (i < 8 || i >= 28))).toEqual(
      [],
    );
    await expect(checkpoint.readInto('w', 20, new Uint8Array(5))).rejects.toMatchObject({
      code: 'ERR_OUT_OF_BOUNDS',
    });
    await expect(checkpoint.readInto('v', 0, new Uint8Array(1))).rejects.toThrow(/no tensor "v"/);
    await checkpoint.dispose();
    await expect(checkpoint.readInto('w', 0, new Uint8Array(1))).rejects.toMatchObject({
      code: 'ERR_DISPOSED',
    });
  });

  it('leaves what was there when writing fails, and nothing else', async () => {
    const dir = join(folder, 'atomic');
    await mkdir(dir);
    const path = join(dir, 'x.safetensors');
    await writeCheckpoint(path, [entry('a', [3])]);
    const before = await readFile(path);
    const failing = async function* () {
      yield bytesOf(2);
      throw new Error('disk of the producer');
    };
    const attempt = (entries: CheckpointEntry[]) => writeCheckpoint(path, entries);
    await expect(attempt([{ ...entry('a', [3]), data: failing() }])).rejects.toThrow('disk of the producer');
    await expect(attempt([{ ...entry('a', [3]), data: [bytesOf(2)] }])).rejects.toThrow(
      /"a".*have 2 bytes.*needs 3/,
    );
    await expect(attempt([{ ...entry('a', [3]), data: [bytesOf(4)] }])).rejects.toThrow(/more than 3/);
    await expect(attempt([entry('a', [3]), entry('a', [3])])).rejects.toThrow(/"a".*twice/);
    await expect(attempt([entry('__metadata__', [3])])).rejects.toThrow(/reserved/);
    await expect(attempt([entry('a', [1.5])])).rejects.toThrow(/whole numbers/);
    await expect(attempt([{ ...entry('a', []), dtype: 'f4e2m1x2' }])).rejects.toThrow(/dimension/);
    expect(await readdir(dir)).toEqual(['x.safetensors']);
    expect(await readFile(path)).toEqual(before);
  });

  it('refuses files that are cut or lie about their header', async () => {
    const path = join(folder, 'cut.safetensors');
    await writeCheckpoint(path, [entry('a', [100])]);
    const whole = await readFile(path);
    const refused = async (bytes: Uint8Array, words: RegExp) => {
      await writeFile(path, bytes);
      await expect(openCheckpoint(path)).rejects.toMatchObject({ code: 'ERR_CHECKPOINT' });
      await expect(openCheckpoint(path)).rejects.toThrow(words);
    };
    await refused(whole.subarray(0, whole.length - 1), /"a".*truncated/);
    await refused(whole.subarray(0, 20), /claims \d+ bytes, but only 12 follow/);
    await refused(whole.subarray(0, 5), /has 5 bytes/);
    await refused(new Uint8Array(0), /has 0 bytes/);
    const long = new Uint8Array(whole);
    new DataView(long.buffer).setBigUint64(0, 2n ** 63n, true);
    await refused(long, /claims 9223372036854775808 bytes; the format allows 100000000/);
    await expect(openCheckpoint(join(folder, 'none'))).rejects.toThrow(/does not exist\nCheck the path\.$/);
    await expect(openCheckpoint('/dev/null')).rejects.toThrow(/not a regular file/);
    await mkdir(join(folder, 'no-model'), { recursive: true });
    await expect(openCheckpoint(join(folder, 'no-model'))).rejects.toThrow(/folder without/);
  });

  it('notices that a file became shorter after it was opened', async () => {
    const path = join(folder, 'shrinks.safetensors');
    await writeCheckpoint(path, [entry('a', [100])]);
    await using checkpoint = await openCheckpoint(path);
    await truncate(path, (await readFile(path)).length - 10);
    await expect(checkpoint.readInto('a', 0, new Uint8Array(100))).rejects.toThrow(/became shorter/);
  });
});
