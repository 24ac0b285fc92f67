// SPDX-License-Identifier: Apache-2.0
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { DimRuns } from '@nccl-ext/core';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openCheckpoint } from './open-checkpoint.js';
import { type CheckpointEntry, writeCheckpoint } from './write-checkpoint.js';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'nccl-ext-safetensors-'));
});
afterAll(() => rm(folder, { recursive: true }));

const bytesOf = (length: number, seed = 1): Uint8Array =>
  Uint8Array.from({ length }, (_, i) => (Math.imul(i + seed, 2654435761) >>> 24) & 0xff);
const entry = (name: string, shape: number[], seed = 1): CheckpointEntry => ({
  name,
  dtype: 'u8',
  shape,
  data: [
    bytesOf(
      shape.reduce((a, b) => a * b, 1),
      seed,
    ),
  ],
});

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

describe('an index', () => {
  const build = async (name: string, weightMap: Record<string, string> | string): Promise<string> => {
    const dir = join(folder, name);
    await mkdir(dir, { recursive: true });
    await writeCheckpoint(join(dir, 'm1.safetensors'), [entry('a', [3]), entry('b', [4], 5)], {
      metadata: { k: '1' },
    });
    await writeCheckpoint(join(dir, 'm2.safetensors'), [entry('c', [5], 9)], {
      metadata: { k: '2', l: '3' },
    });
    const path = join(dir, 'model.safetensors.index.json');
    const text =
      typeof weightMap === 'string'
        ? weightMap
        : JSON.stringify({ metadata: { total_size: 12 }, weight_map: weightMap });
    await writeFile(path, text);
    return path;
  };
  const right = { a: 'm1.safetensors', b: 'm1.safetensors', c: 'm2.safetensors' };

  it('joins its files, found by itself or by its folder, through links', async () => {
    const path = await build('good', right);
    for (const by of [path, join(folder, 'good')]) {
      await using checkpoint = await openCheckpoint(by);
      expect([...checkpoint.tensors.keys()]).toEqual(['a', 'b', 'c']);
      expect(checkpoint.metadata).toEqual({ k: '1', l: '3' });
      const bytes = new Uint8Array(5);
      await checkpoint.readInto('c', 0, bytes);
      expect(bytes).toEqual(bytesOf(5, 9));
    }
    await mkdir(join(folder, 'linked'));
    for (const name of ['m1.safetensors', 'm2.safetensors', 'model.safetensors.index.json']) {
      await symlink(join(folder, 'good', name), join(folder, 'linked', name));
    }
    await using linked = await openCheckpoint(join(folder, 'linked'));
    expect(linked.files).toHaveLength(2);
  });

  const cases: [title: string, map: Record<string, string> | string, words: RegExp][] = [
    ['a missing file', { ...right, d: 'm3.safetensors' }, /m3\.safetensors: cannot be opened/],
    ['a missing tensor', { ...right, d: 'm2.safetensors' }, /"d": is not in its file m2/],
    [
      'a tensor in the wrong file',
      { ...right, a: 'm2.safetensors' },
      /"a": is in m1\.safetensors, not in m2/,
    ],
    [
      'a tensor it does not list',
      { a: right.a, c: right.c },
      /"b": is in m1\.safetensors, but not in the index/,
    ],
    [
      'a name twice',
      '{"weight_map":{"a":"m1.safetensors","a":"m2.safetensors"}}',
      /"a": the index has this name twice/,
    ],
    ['no weight_map', '{}', /weight_map/],
    ['no JSON', '{', /cannot be read as JSON/],
    ['a way out of its folder', { ...right, a: '../good/m1.safetensors' }, /"a": its file .* plain name/],
    ['an absolute path', { ...right, a: '/etc/passwd' }, /"a": its file .* plain name/],
    ['a backslash', { ...right, a: '..\\m1.safetensors' }, /"a": its file .* plain name/],
  ];
  it.each(cases)('refuses %s', async (title, map, words) => {
    const path = await build(`bad ${title}`, map);
    await expect(openCheckpoint(path)).rejects.toMatchObject({ code: 'ERR_CHECKPOINT' });
    await expect(openCheckpoint(path)).rejects.toThrow(words);
  });

  it('refuses a tensor that is in two files', async () => {
    const path = await build('two files', right);
    await writeCheckpoint(join(folder, 'two files', 'm2.safetensors'), [entry('c', [5]), entry('a', [3])]);
    await expect(openCheckpoint(path)).rejects.toThrow(
      /"a": is in two files: m1\.safetensors and m2\.safetensors/,
    );
  });
});

describe('readSlice', () => {
  /** Runs that hold the given indices in this order, one run each. */
  const runsOf = (indices: readonly number[]): DimRuns => ({
    extent: indices.length,
    runs: indices.map((start, local) => ({ start, length: 1, stride: 1, count: 1, local })),
  });

  it('equals a naive gather, whatever the shape and the runs', async () => {
    const path = join(folder, 'slices.safetensors');
    const shapes = [[7], [5, 6], [1, 9], [4, 3, 5], [2, 3, 2, 4], []];
    await writeCheckpoint(
      path,
      shapes.map((shape, i) => ({
        name: String(i),
        dtype: 'i16' as const,
        shape,
        data: [bytesOf(2 * shape.reduce((a, b) => a * b, 1), i * 1000)],
      })),
    );
    await using checkpoint = await openCheckpoint(path);
    const scenario = fc
      .nat(shapes.length - 1)
      .chain((which) =>
        fc.tuple(
          fc.constant(which),
          fc.tuple(
            ...shapes[which]!.map((extent) =>
              fc.oneof(
                fc.constant(Array.from({ length: extent }, (_, i) => i)),
                fc.subarray(Array.from({ length: extent }, (_, i) => i)),
                fc.shuffledSubarray(Array.from({ length: extent }, (_, i) => i)),
              ),
            ),
          ),
        ),
      );
    await fc.assert(
      fc.asyncProperty(scenario, async ([which, indices]) => {
        const shape = shapes[which]!;
        const all = bytesOf(2 * shape.reduce((a, b) => a * b, 1), which * 1000);
        let offsets = [0];
        for (const [dim, list] of indices.entries()) {
          offsets = offsets.flatMap((base) => list.map((index) => base * shape[dim]! + index));
        }
        const expected = offsets.flatMap((offset) => [all[2 * offset]!, all[2 * offset + 1]!]);
        const target = new Uint8Array(expected.length);
        await checkpoint.readSlice(String(which), indices.map(runsOf), target);
        expect([...target]).toEqual(expected);
      }),
      { numRuns: 300 },
    );
  });

  it('reads large slices through a bounded buffer, side by side', async () => {
    const path = join(folder, 'large.safetensors');
    const [rows, columns] = [1536, 8192];
    const data = bytesOf(rows * columns);
    await writeCheckpoint(path, [{ name: 'w', dtype: 'u8', shape: [rows, columns], data: [data] }]);
    await using checkpoint = await openCheckpoint(path);
    const whole = (extent: number): DimRuns => ({
      extent,
      runs: [{ start: 0, length: extent, stride: extent, count: 1, local: 0 }],
    });
    const part = (start: number, length: number): DimRuns => ({
      extent: length,
      runs: [{ start, length, stride: length, count: 1, local: 0 }],
    });
    const halves = (length: number): DimRuns => ({
      extent: 2 * length,
      runs: [{ start: 0, length, stride: columns / 2, count: 2, local: 0 }],
    });
    const plans: [DimRuns, DimRuns][] = [
      [part(384, 384), whole(columns)],
      [whole(rows), part(2048, 2048)],
      [part(1, 1500), halves(100)],
    ];
    await Promise.all(
      plans.map(async (runs) => {
        const target = new Uint8Array(runs[0].extent * runs[1].extent);
        await checkpoint.readSlice('w', runs, target);
        const columnList = runs[1].runs.flatMap(({ start, length, stride, count }) =>
          Array.from(
            { length: count * length },
            (_, i) => start + Math.floor(i / length) * stride + (i % length),
          ),
        );
        let differences = 0;
        for (let i = 0; i < target.length; i++) {
          const row = runs[0].runs[0]!.start + Math.floor(i / columnList.length);
          if (target[i] !== data[row * columns + columnList[i % columnList.length]!]) differences++;
        }
        expect(differences).toBe(0);
      }),
    );
  });

  it('refuses runs and targets that do not fit', async () => {
    const path = join(folder, 'fit.safetensors');
    await writeCheckpoint(path, [entry('w', [4, 2])]);
    await using checkpoint = await openCheckpoint(path);
    const read = (runs: DimRuns[], bytes: number) => checkpoint.readSlice('w', runs, new Uint8Array(bytes));
    await expect(read([runsOf([0])], 1)).rejects.toThrow(/runs: 1 lists for 2 dimensions/);
    await expect(read([runsOf([4]), runsOf([0])], 1)).rejects.toThrow(
      /runs\[0\]: reach to 5, beyond the extent 4/,
    );
    await expect(read([runsOf([3]), runsOf([0])], 2)).rejects.toThrow(/target: has 2 bytes, the slice has 1/);
  });
});
