// SPDX-License-Identifier: Apache-2.0
// Whole models move between layouts and are compared byte for byte; what cannot run is refused before anything is allocated.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { manifestOf } from '../manifest/manifest-of.js';
import { modelFromJson, namedModel } from '../model/describe-model.js';
import type { ModelDescription } from '../model/model-description.js';
import { findRules } from '../rules/find-rules.js';
import { refitTensors } from '../rules/refit-tensors.js';
import { openCheckpoint } from '../safetensors/open-checkpoint.js';
import { writeCheckpoint } from '../safetensors/write-checkpoint.js';
import { planRefit, type RefitRequest, refit } from './refit.js';
import type { RefitPhase, RefitProgress } from './refit-result.js';

const folder = mkdtempSync(join(tmpdir(), 'nccl-ext-refit-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** A Qwen3 of two layers with sizes that do not divide evenly. */
const model: ModelDescription = modelFromJson(
  {
    __config__: {
      model_type: 'qwen3',
      vocab_size: 101,
      num_hidden_layers: 2,
      hidden_size: 24,
      intermediate_size: 50,
      num_attention_heads: 6,
      num_key_value_heads: 3,
      head_dim: 4,
      tie_word_embeddings: false,
    },
    'model.embed_tokens.weight': { shape: [101, 24], dtype: 'BF16' },
    'model.norm.weight': { shape: [24], dtype: 'BF16' },
    'lm_head.weight': { shape: [101, 24], dtype: 'BF16' },
    ...Object.assign({}, ...[0, 1].map(layer)),
  },
  'tiny',
);

function layer(index: number): Record<string, { shape: number[]; dtype: string }> {
  const shapes: Record<string, number[]> = {
    'input_layernorm.weight': [24],
    'post_attention_layernorm.weight': [24],
    'self_attn.q_proj.weight': [24, 24],
    'self_attn.k_proj.weight': [12, 24],
    'self_attn.v_proj.weight': [12, 24],
    'self_attn.o_proj.weight': [24, 24],
    'self_attn.q_norm.weight': [4],
    'self_attn.k_norm.weight': [4],
    'mlp.gate_proj.weight': [50, 24],
    'mlp.up_proj.weight': [50, 24],
    'mlp.down_proj.weight': [24, 50],
  };
  return Object.fromEntries(
    Object.entries(shapes).map(([name, shape]) => [
      `model.layers.${index}.${name}`,
      { shape, dtype: 'BF16' },
    ]),
  );
}

const run = { model, backend: 'embedded', verify: true } as const;

describe('refit', () => {
  it.each<[string, Partial<RefitRequest> & Pick<RefitRequest, 'from' | 'to'>]>([
    ['tensor parallel to replicas', { from: 'tp=4', to: 'tp=2,dp=2' }],
    ['pipeline to tensor parallel', { from: 'pp=2,tp=2', to: 'tp=3' }],
    ['more ranks than key and value heads', { from: 'tp=2', to: 'tp=6' }],
    ['on the same ranks', { from: 'tp=4', to: 'tp=2,dp=2', colocated: true }],
    ['into fused engine storages', { from: 'tp=2', to: 'tp=2', toView: 'vllm' }],
    ['out of fused storages', { from: 'tp=2', to: 'tp=3', fromView: 'vllm' }],
    ['with a cast', { from: 'tp=2', to: 'dp=2', cast: 'f8e4m3' }],
    ['over two NVLink domains', { from: 'tp=8', to: 'tp=2,dp=4', topology: 'dgx-h100' }],
  ])('moves every byte: %s', async (_, sides) => {
    const result = await refit({ ...run, ...sides });
    expect(result).toMatchObject({
      ok: true,
      verified: true,
      tensors: model.parameters.length,
      version: 1,
      backend: 'embedded',
    });
    expect(result.wireBytes).toBeGreaterThanOrEqual(result.lowerBoundBytes);
    expect(result.wireBytes + result.localBytes).toBeGreaterThan(0);
  });

  it('takes manifests on one or both sides, to the same effect', async () => {
    const rules = await findRules(model);
    const layouts = refitTensors({
      model,
      rules,
      from: { parallelism: 'tp=4' },
      to: { parallelism: 'tp=2,dp=2', view: 'vllm' },
    });
    const [from, to] = [manifestOf(layouts, 'source'), manifestOf(layouts, 'destination')];
    const byRules = await refit({ ...run, from: 'tp=4', to: 'tp=2,dp=2', toView: 'vllm' });
    for (const sides of [
      { from, to },
      { from, to: 'tp=2,dp=2', toView: 'vllm' },
      { from: 'tp=4', to },
    ]) {
      const { wireBytes, verified } = await refit({ ...run, ...sides });
      expect([wireBytes, verified]).toEqual([byRules.wireBytes, true]);
    }
    await expect(refit({ ...run, model: undefined, from, to })).resolves.toMatchObject({ verified: true });
    await expect(refit({ ...run, model: undefined, from, to: 'tp=2' })).rejects.toMatchObject({
      code: 'ERR_MODEL',
    });
  });

  it('moves a real checkpoint', async () => {
    const path = join(folder, 'model.safetensors');
    await writeCheckpoint(
      path,
      model.parameters.map(({ name, shape, dtype }, index) => ({
        name,
        shape,
        dtype,
        data: [
          Uint8Array.from({ length: shape.reduce((a, b) => a * b, 2) }, (_, i) => (i * 7 + index) & 0x3f),
        ],
      })),
    );
    const checkpoint = await openCheckpoint(path);
    try {
      await expect(refit({ ...run, checkpoint, from: 'tp=3', to: 'tp=2,dp=2' })).resolves.toMatchObject({
        verified: true,
        values: path,
      });
    } finally {
      await checkpoint.dispose();
    }
  });

  it('tells its phases in order, each from nothing to all', async () => {
    const heard: RefitProgress[] = [];
    await refit({ ...run, from: 'tp=2', to: 'tp=1', onProgress: (progress) => heard.push(progress) });
    const phases = [...new Set(heard.map(({ phase }) => phase))];
    expect(phases).toEqual<RefitPhase[]>(['plan', 'load', 'move', 'check']);
    for (const phase of phases) {
      const bytes = heard.filter((progress) => progress.phase === phase).map((progress) => progress.bytes);
      expect(bytes).toEqual(bytes.toSorted((a, b) => a - b));
      expect(bytes[0]).toBe(0);
      expect(heard.findLast((progress) => progress.phase === phase)).toMatchObject({ bytes: bytes.at(-1) });
    }
  });

  it('rejects with the reason of the signal, whatever the phase, and reports no version', async () => {
    for (const phase of ['plan', 'load', 'move', 'check'] as const) {
      const controller = new AbortController();
      const reason = new Error(`stopped in ${phase}`);
      const attempt = refit({
        ...run,
        from: 'tp=2',
        to: 'tp=2',
        signal: controller.signal,
        onProgress: (progress) => {
          if (progress.phase === phase) controller.abort(reason);
        },
      });
      await expect(attempt).rejects.toBe(reason);
    }
  });

  it('refuses what this machine cannot hold, with the sizes, before it allocates', async () => {
    const attempt = refit({
      model: namedModel('Kimi-K2-Instruct'),
      backend: 'embedded',
      from: 'tp=1',
      to: 'tp=1',
    });
    await expect(attempt).rejects.toMatchObject({
      code: 'ERR_OUT_OF_MEMORY',
      message: expect.stringMatching(/GB/),
      help: expect.stringMatching(/--layers|plan m2n/),
    });
  });
});

describe('planRefit', () => {
  it('plans without data', async () => {
    const { plan } = await planRefit({ model, from: 'tp=4', to: 'tp=2,dp=2' });
    expect(plan.totals.wireBytes).toBe(plan.totals.lowerBoundBytes);
  });
});
