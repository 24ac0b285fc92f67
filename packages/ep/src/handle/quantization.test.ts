// SPDX-License-Identifier: Apache-2.0
// Quantised rows are what their definition says, bit for bit, and an fp8 combine stays within its bound.

import { decodeFloat, encodeFloat, localWorld, type World } from '@nccl-ext/core';
import type { EpLayout } from '@nccl-ext/core/contract';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createEpGroup } from '../group/create-ep-group.js';
import { numbers, rounded } from '../oracle/batches.test-util.js';
import { bytesOf, place, poisoned, valuesOf } from '../oracle/on-device.test-util.js';
import { dequantizeFp8, dequantizeMxfp8 } from '../quantization/dequantize.js';
import { allocateTensor, type EpTensor } from '../tensor/tensor.js';
import { viewTensor } from '../tensor/view-tensor.js';

const [hidden, topK, dtype] = [256, 1, 'bf16'] as const;
const next = numbers(5);
/** Blocks of every size: small, large, zero. */
const row = Array.from({ length: hidden }, (_, h) =>
  h < 32 ? 0 : rounded(dtype, (next() - 0.5) * 2 ** ((Math.floor(h / 32) * 5) % 31)),
);

let world: World;
beforeEach(async () => {
  world = await localWorld({ ranks: 2, backend: 'embedded', timeoutMs: 3000 });
});
afterEach(() => world.dispose());

/** Sends the row of each rank to the other one; returns rows and scales as bytes, and the numbers that combine gives. */
async function exchange(
  layout: EpLayout,
  quantization: 'fp8' | 'fp8-pow2' | 'mxfp8',
): Promise<{ rows: Uint8Array; scales: Uint8Array }[]> {
  return world.run(async (comm) => {
    const config = { experts: 2, topK, hidden, dtype, maxTokensPerRank: 1 } as const;
    const group = await createEpGroup(comm, config);
    const handle = group.createHandle({ layout: layout as 'flat' });
    const stream = comm.createStream();
    handle.route(place(comm, 'i32', [1, 1], [1 - comm.rank]), { stream });
    const shapes: Record<string, { dtype: 'f32'; shape: readonly number[] }> = handle.outputShapes(
      'dispatch',
      {
        quantization,
        rows: 1,
      },
    ) as never;
    const out: Record<string, EpTensor> = {};
    for (const [name, wanted] of Object.entries(shapes))
      out[name] = poisoned(comm, wanted.dtype, wanted.shape);
    handle.dispatch(place(comm, dtype, [1, hidden], row), {
      stream,
      weights: place(comm, 'f32', [1, 1], [1]),
      quantization,
      out: out as never,
    });
    await stream.synchronize();
    // Rank-major has a slab per source; the only row is that of the other rank.
    const first = layout === 'rank-major' ? 1 - comm.rank : 0;
    const cut = (tensor: EpTensor): Uint8Array => {
      const bytes = bytesOf(tensor);
      const perRow = bytes.length / tensor.shape.slice(0, -1).reduce((a, b) => a * b);
      return bytes.slice(first * perRow, (first + 1) * perRow);
    };
    return { rows: cut(out.tokens!), scales: cut(out.scales!) };
  });
}

describe.each(['expert-major', 'rank-major', 'flat', 'packed'] as const)('%s', (layout) => {
  it.each(['fp8', 'fp8-pow2'] as const)('%s has a scale per 128 channels', async (quantization) => {
    for (const { rows, scales } of await exchange(layout, quantization)) {
      const seen = new Float32Array(scales.slice().buffer);
      for (let block = 0; block < hidden / 128; block++) {
        const amax = Math.max(...row.slice(block * 128, (block + 1) * 128).map(Math.abs));
        const plain = Math.fround(amax / 448);
        const scale = quantization === 'fp8' ? plain : 2 ** Math.ceil(Math.log2(amax / 448));
        expect(seen[block]).toBe(scale);
        for (let h = block * 128; h < (block + 1) * 128; h++)
          expect(rows[h]).toBe(encodeFloat('f8e4m3', Math.fround(row[h]! / scale)));
      }
      const values = dequantizeFp8({ rows, hidden }, seen);
      for (const [h, value] of values.entries())
        expect(Math.abs(value - row[h]!)).toBeLessThanOrEqual(
          2 ** -4 * Math.abs(row[h]!) + seen[Math.floor(h / 128)]! * 2 ** -9,
        );
    }
  });

  it('mxfp8 has an exponent per 32 channels', async () => {
    for (const { rows, scales } of await exchange(layout, 'mxfp8')) {
      for (let block = 0; block < hidden / 32; block++) {
        const amax = Math.max(...row.slice(block * 32, (block + 1) * 32).map(Math.abs));
        if (amax > 0) expect(scales[block]).toBe(Math.floor(Math.log2(amax)) - 8 + 127);
        const scale = 2 ** (scales[block]! - 127);
        for (let h = block * 32; h < (block + 1) * 32; h++)
          expect(decodeFloat('f8e4m3', rows[h]!)).toBe(
            decodeFloat('f8e4m3', encodeFloat('f8e4m3', Math.fround(row[h]! / scale))),
          );
      }
      const values = dequantizeMxfp8({ rows, hidden }, scales);
      expect([...values.subarray(0, 32)]).toEqual(Array(32).fill(0));
    }
  });
});

describe('forward', () => {
  it.each([
    ['f8e4m3', 16, 'f32', 2],
    ['f4e2m1x2', 16, 'u8', 3],
    ['bf16', 16, undefined, 0],
  ] as const)('passes %s rows on as bytes', async (rowDType, elements, scaleDType, perRow) => {
    const width = rowDType === 'f4e2m1x2' ? elements * 2 : elements;
    const seen = await world.run(async (comm) => {
      const config = { experts: 2, topK, hidden: width, dtype, maxTokensPerRank: 1 } as const;
      const handle = (await createEpGroup(comm, config)).createHandle({ layout: 'packed' });
      const stream = comm.createStream();
      handle.route(place(comm, 'i32', [1, 1], [1 - comm.rank]), { stream });
      const tokens = allocateTensor(comm, rowDType, [1, elements]);
      for (const [i] of bytesOf(tokens).entries()) bytesOf(tokens)[i] = 16 * comm.rank + i;
      const out = { tokens: poisoned(comm, rowDType, [1, elements]) };
      const scales =
        scaleDType === undefined
          ? undefined
          : place(comm, scaleDType, [1, perRow], Array(perRow).fill(comm.rank + 3));
      const outScales = scaleDType === undefined ? undefined : poisoned(comm, scaleDType, [1, perRow]);
      handle.dispatch(tokens, {
        stream,
        weights: place(comm, 'f32', [1, 1], [1]),
        quantization: 'forward',
        scales,
        out: { ...out, scales: outScales },
      });
      await stream.synchronize();
      return { rows: [...bytesOf(out.tokens)], scales: outScales === undefined ? [] : valuesOf(outScales) };
    });
    for (const [rank, { rows, scales }] of seen.entries()) {
      expect(rows).toEqual(rows.map((_, i) => 16 * (1 - rank) + i));
      expect(scales).toEqual(Array(perRow).fill(1 - rank + 3));
    }
  });
});

it('an fp8 combine is within 2^-4 of each inner sum and 2^-10 of its scale', async () => {
  const results = await world.run(async (comm) => {
    const config = { experts: 2, topK, hidden, dtype: 'f32', maxTokensPerRank: 1 } as const;
    const handle = (await createEpGroup(comm, config)).createHandle({ layout: 'expert-major' });
    const stream = comm.createStream();
    handle.route(place(comm, 'i32', [1, 1], [1 - comm.rank]), { stream });
    const tokens = poisoned(comm, 'f32', [1, 2, hidden]);
    const out = { tokens, expertCounts: allocateTensor(comm, 'i32', [1]) };
    const weights = place(comm, 'f32', [1, 1], [0.75]);
    handle.dispatch(place(comm, 'f32', [1, hidden], row), { stream, weights, out });
    const y = poisoned(comm, 'f32', [1, hidden]);
    handle.combine(tokens, { stream, quantization: 'fp8', out: { tokens: y } });
    await stream.synchronize();
    return viewTensor(y).slice();
  });
  for (const y of results) {
    for (const [h, value] of y.entries()) {
      const block = row.slice(Math.floor(h / 128) * 128, Math.floor(h / 128) * 128 + 128);
      const inner = Math.fround(0.75 * row[h]!);
      const scale = Math.fround(Math.max(...block.map((x) => Math.abs(Math.fround(0.75 * x)))) / 448);
      expect(Math.abs(value - inner)).toBeLessThanOrEqual(2 ** -4 * Math.abs(inner) + scale * 2 ** -10);
      const payload = decodeFloat('f8e4m3', encodeFloat('f8e4m3', Math.fround(inner / scale)));
      expect(value).toBe(Math.fround(payload * scale));
    }
  }
});
