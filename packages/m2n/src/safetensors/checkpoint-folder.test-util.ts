// SPDX-License-Identifier: Apache-2.0
// A folder for the checkpoints of a test file, and tensors of bytes that tell their place.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll } from 'vitest';
import type { CheckpointEntry } from './write-checkpoint.js';

export let folder: string;

/** An empty folder, removed after the tests of a file. */
export function useFolder(): void {
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'nccl-ext-safetensors-'));
  });
  afterAll(() => rm(folder, { recursive: true }));
}

export const bytesOf = (length: number, seed = 1): Uint8Array =>
  Uint8Array.from({ length }, (_, i) => (Math.imul(i + seed, 2654435761) >>> 24) & 0xff);
export const entry = (name: string, shape: number[], seed = 1): CheckpointEntry => ({
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
