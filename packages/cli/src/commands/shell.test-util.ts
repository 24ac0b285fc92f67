// SPDX-License-Identifier: Apache-2.0
// The built command as a shell sees it, in a folder with the checkpoint of a tiny model.

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect } from 'vitest';
import { writeTinyCheckpoint } from './tiny-checkpoint.test-util.js';

const bin = fileURLToPath(new URL('../../bin/nccl-ext.mjs', import.meta.url));
export let folder: string;
export let checkpoint: string;

/** Makes the folder, and removes it after the tests of a file. */
export function useFolder(): void {
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'nccl-ext-cli-'));
    await mkdir(join(folder, 'tiny'));
    checkpoint = join(folder, 'tiny', 'model.safetensors');
    await writeTinyCheckpoint(checkpoint);
  });
  afterAll(() => rm(folder, { recursive: true }));
}

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export function start(args: readonly string[], env: Record<string, string> = {}): ChildProcess {
  // In the folder, without variables of this test run: package managers put GPU backends of the clone on NODE_PATH.
  const clean = Object.entries(process.env).filter(([name]) => !/^(NCCL|NODE_|FORCE_COLOR|RANK)/.test(name));
  return spawn(process.execPath, [bin, ...args], {
    cwd: folder,
    env: { ...Object.fromEntries(clean), ...env },
  });
}

export async function run(args: readonly string[], env?: Record<string, string>): Promise<Ended> {
  const child = start(args, env);
  let [stdout, stderr] = ['', ''];
  child.stdout!.on('data', (text) => {
    stdout += text;
  });
  child.stderr!.on('data', (text) => {
    stderr += text;
  });
  const code = await new Promise<number | null>((resolve) => child.on('close', resolve));
  return { code, stdout, stderr };
}

/** The only line of stdout, parsed. */
export async function json(
  args: readonly string[],
  env?: Record<string, string>,
): Promise<Ended & { value: Record<string, unknown> }> {
  const ended = await run([...args, '--json'], env);
  expect(ended.stdout.split('\n')).toHaveLength(2);
  return { ...ended, value: JSON.parse(ended.stdout) };
}
