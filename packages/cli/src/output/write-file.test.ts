// SPDX-License-Identifier: Apache-2.0
// A written file is whole or absent, and paths that cannot work are refused first.

import { mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { requireOutput, writeWhole } from './write-file.js';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'nccl-ext-write-'));
});
afterEach(() => rm(folder, { recursive: true }));

const never = new AbortController().signal;

it('replaces the file and leaves nothing beside it', async () => {
  const path = join(folder, 'report.html');
  await writeWhole(path, 'one', never);
  await writeWhole(path, 'two', never);
  expect(await readFile(path, 'utf8')).toBe('two');
  expect(await readdir(folder)).toEqual(['report.html']);
});

it('keeps the old file on an abort', async () => {
  const path = join(folder, 'report.html');
  await writeWhole(path, 'one', never);
  const controller = new AbortController();
  controller.abort(new Error('stop'));
  await expect(writeWhole(path, 'two', controller.signal)).rejects.toThrow('stop');
  expect(await readFile(path, 'utf8')).toBe('one');
  expect(await readdir(folder)).toEqual(['report.html']);
});

it('refuses folders that are not there, folders as files, other extensions and inputs', async () => {
  const input = join(folder, 'shapes.html');
  await writeFile(input, '{}');
  const output = (path: string) =>
    requireOutput({ option: 'report', path, extension: '.html', inputs: [undefined, input] });
  await expect(output(join(folder, 'a.html'))).resolves.toBeUndefined();
  await expect(output(join(folder, 'x', 'a.html'))).rejects.toThrow('does not exist');
  await expect(output(folder)).rejects.toThrow('is a folder');
  await expect(output(join(folder, 'model.safetensors'))).rejects.toThrow('does not end in .html');
  await symlink(input, join(folder, 'link.html'));
  await expect(output(join(folder, 'link.html'))).rejects.toThrow('which the command reads');
});
