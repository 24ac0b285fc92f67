// SPDX-License-Identifier: Apache-2.0
// An index joins its files into one checkpoint, and every way in which it can be wrong is named.

import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { bytesOf, entry, folder, useFolder } from './checkpoint-folder.test-util.js';
import { openCheckpoint } from './open-checkpoint.js';
import { writeCheckpoint } from './write-checkpoint.js';

useFolder();

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
