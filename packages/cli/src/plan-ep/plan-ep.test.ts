// SPDX-License-Identifier: Apache-2.0
// Plans of small routings, against numbers worked out by hand; traces in both forms, and what is wrong with them.

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { singleDomain, topologyFor } from '@nccl-ext/core';
import { writeCheckpoint } from '@nccl-ext/m2n';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { EpPlanInput } from './ep-input.js';
import { planEp, wireBytes } from './plan-ep.js';
import { readTrace } from './read-trace.js';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'nccl-ext-plan-ep-'));
});
afterAll(() => rm(folder, { recursive: true }));

/** Experts 0, 1 on rank 0 and 2, 3 on rank 1; rows of 128 bytes. */
const input: EpPlanInput = {
  config: { experts: 4, topK: 2, hidden: 64, dtype: 'bf16', maxTokensPerRank: 3 },
  ranks: 2,
  layout: 'flat',
  alignment: 1,
  quantization: 'none',
  topology: singleDomain(2),
  topkIdx: [Int32Array.of(0, 1, 0, 2, -1, 3), Int32Array.of(2, 3)],
  routing: 'by hand',
};

describe('planEp', () => {
  it('counts rows, entries and bytes', () => {
    const { balance, received, bytesByLink, memory } = planEp(input);
    expect([...received]).toEqual([2, 3]);
    expect([...balance.rank.load]).toEqual([3, 4]);
    expect([...balance.physical.load]).toEqual([2, 1, 2, 2]);
    // Rank 0 keeps two tokens and sends two; rank 1 keeps its one.
    expect(bytesByLink.dispatch).toMatchObject({ self: 3 * 128, nvlink: 2 * 128, network: 0 });
    expect(bytesByLink.combine).toEqual(bytesByLink.dispatch);
    expect(memory.layouts.flat.rows).toBe(6);
  });

  it('counts the rows of each layout', () => {
    const rowsOf = (change: Partial<EpPlanInput>) => [...planEp({ ...input, ...change }).received];
    expect(rowsOf({ layout: 'expert-major' })).toEqual([3, 4]);
    expect(rowsOf({ layout: 'rank-major' })).toEqual([2, 3]);
    expect(rowsOf({ layout: 'packed', alignment: 4 })).toEqual([8, 8]);
  });

  it('bounds time by the busiest port', () => {
    const far = topologyFor('dgx-h100', 16);
    const topkIdx = Array.from({ length: 16 }, (_, rank) => Int32Array.of(0, rank === 9 ? 1 : -1));
    const config = { ...input.config, experts: 16 };
    const { bounds } = planEp({ ...input, config, ranks: 16, topology: far, topkIdx });
    // Rank 0 receives one row from each of 8 ranks on another node, at 50 GB/s.
    expect(bounds.dispatch).toMatchObject({ rank: 0, what: 'receives', bytes: 8 * 128 });
    expect(bounds.dispatch.seconds).toBeCloseTo((8 * 128) / 50e9, 15);
    expect(bounds.combine).toMatchObject({ rank: 0, what: 'sends', bytes: 8 * 128 });
  });

  it('knows what a row takes on the wire', () => {
    expect(wireBytes(7168, 'bf16', 'none')).toBe(14336);
    expect(wireBytes(7168, 'bf16', 'fp8')).toBe(7392);
    expect(wireBytes(7168, 'bf16', 'mxfp8')).toBe(7392);
  });
});

describe('readTrace', () => {
  it('reads JSON, also of ranks without tokens', async () => {
    const file = join(folder, 'trace.json');
    await writeFile(file, '{"topkIdx": [[[0, 1], [2, -1]], [], [[3, 0]]]}');
    const { topK, ranks } = await readTrace(file);
    expect(topK).toBe(2);
    expect(ranks.map(({ tokens }) => tokens)).toEqual([2, 0, 1]);
    expect([...ranks[0]!.ids]).toEqual([0, 1, 2, -1]);
  });

  it('reads safetensors', async () => {
    const file = join(folder, 'trace.safetensors');
    const ids = [BigInt64Array.of(5n, -1n, 3n, 4n), BigInt64Array.of(1n, 2n)];
    await writeCheckpoint(
      file,
      ids.map((list, rank) => ({
        name: `topk_idx.${rank}`,
        dtype: 'i64' as const,
        shape: [list.length / 2, 2],
        data: [new Uint8Array(list.buffer)],
      })),
    );
    const { topK, ranks } = await readTrace(file);
    expect(topK).toBe(2);
    expect(ranks.map((rank) => [...rank.ids])).toEqual([
      [5, -1, 3, 4],
      [1, 2],
    ]);
  });

  it.each([
    ['{"ids": []}', '"topkIdx"'],
    ['{"topkIdx": []}', 'no ranks'],
    ['{"topkIdx": [[], []]}', 'no tokens'],
    ['{"topkIdx": [[[0, 1], [2]]]}', 'topkIdx[0][1]'],
    ['{"topkIdx": [[[0, 1.5]]]}', 'topkIdx[0][0]'],
    ['{"topkIdx": [[[0, 1]], [[2]]]}', '1 ids per token on rank 1'],
    ['{"topkIdx": [[[0, 1]], [[2, 2]]]}', 'topkIdx[1][0] has id 2 twice'],
    ['{"topkIdx": [[[0, 4294967296]]]}', 'topkIdx[0][0][1] is 4294967296'],
    ['[', 'JSON'],
  ])('refuses %s', async (text, message) => {
    const file = join(folder, 'wrong.json');
    await writeFile(file, text);
    await expect(readTrace(file)).rejects.toMatchObject({
      code: 'ERR_INVALID_ARGUMENT',
      field: '--trace',
      message: expect.stringContaining(message),
    });
  });

  it('refuses tensors that are no routing', async () => {
    const file = join(folder, 'wrong.safetensors');
    const write = (name: string, shape: readonly number[]) =>
      writeCheckpoint(file, [{ name, dtype: 'f32', shape, data: [new Uint8Array(16)] }]);
    await write('ids', [2, 2]);
    await expect(readTrace(file)).rejects.toThrow('one tensor per rank');
    await write('ids.1', [2, 2]);
    await expect(readTrace(file)).rejects.toThrow('rank 0 has none');
    await write('ids.0', [2, 2]);
    await expect(readTrace(file)).rejects.toThrow('must be integers [tokens, top-k], not f32 [2, 2]');
  });
});
