// SPDX-License-Identifier: Apache-2.0
// Measures planning alone on a model of the size of Kimi-K2: 2048 ranks (pp 16, ep 128) to 2048 ranks (tp 16).
//
//   npx tsc -b packages/m2n && node packages/m2n/bench/plan-kimi.mjs [--topology dgx-h100] [--runs 5]

import { parseArgs } from 'node:util';
import { dimRuns, presetTopology } from '@nccl-ext/core';
import { createPlan } from '../dist/plan/create-plan.js';
import { sidePattern } from '../dist/plan/side-pattern.js';

const { values } = parseArgs({
  options: { topology: { type: 'string' }, runs: { type: 'string', default: '5' } },
});
const topology = values.topology ? { topology: presetTopology(values.topology, 4096) } : {};

const layers = 61;
const experts = 384;
const stages = 16;
const tp = 16;

/** Tensors as a refit makes them: each stage's dense weights on its 128 ranks, each expert on one of them. */
function tensors() {
  const runs = new Map();
  const interval = (start, length) => {
    const key = `${start}+${length}`;
    if (!runs.has(key)) runs.set(key, dimRuns([{ start, length }]));
    return runs.get(key);
  };
  const whole = (shape) => shape.map((extent) => interval(0, extent));
  const sources = new Map();
  const source = (dtype, shape, first, count) => {
    const key = `${dtype}/${shape}/${first}/${count}`;
    if (!sources.has(key)) {
      const ranks = Array.from({ length: count }, (_, i) => first + i);
      sources.set(key, sidePattern({ dtype, shape, parts: [{ dims: whole(shape), ranks }] }));
    }
    return sources.get(key);
  };
  const destinations = new Map();
  const destination = (dtype, shape, dim) => {
    const key = `${dtype}/${shape}/${dim}`;
    if (!destinations.has(key)) {
      const parts = Array.from({ length: dim === undefined ? 1 : tp }, (_, t) => {
        const size = dim === undefined ? 0 : shape[dim] / tp;
        const dims = shape.map((extent, d) => (d === dim ? interval(t * size, size) : interval(0, extent)));
        const ranks = Array.from({ length: dim === undefined ? 2048 : 128 }, (_, i) =>
          dim === undefined ? 2048 + i : 2048 + i * tp + t,
        );
        return { dims, ranks };
      });
      destinations.set(key, sidePattern({ dtype, shape, parts }));
    }
    return destinations.get(key);
  };
  const list = [];
  const add = (name, dtype, shape, dim, first, count) => {
    list.push({
      name,
      source: [{ pattern: source(dtype, shape, first, count), storage: name }],
      destination: [{ pattern: destination(dtype, shape, dim), storage: name }],
    });
  };
  for (let layer = 0; layer < layers; layer++) {
    const first = Math.floor((layer * stages) / layers) * 128;
    const prefix = `model.layers.${layer}.`;
    add(`${prefix}input_layernorm.weight`, 'bf16', [7168], undefined, first, 128);
    add(`${prefix}post_attention_layernorm.weight`, 'bf16', [7168], undefined, first, 128);
    add(`${prefix}self_attn.q_a_proj.weight`, 'f8e4m3', [1536, 7168], undefined, first, 128);
    add(`${prefix}self_attn.q_b_proj.weight`, 'f8e4m3', [12288, 1536], 0, first, 128);
    add(`${prefix}self_attn.kv_a_proj_with_mqa.weight`, 'f8e4m3', [576, 7168], undefined, first, 128);
    add(`${prefix}self_attn.kv_b_proj.weight`, 'f8e4m3', [16384, 512], 0, first, 128);
    add(`${prefix}self_attn.o_proj.weight`, 'f8e4m3', [7168, 8192], 1, first, 128);
    if (layer === 0) continue;
    add(`${prefix}mlp.gate.weight`, 'bf16', [experts, 7168], undefined, first, 128);
    for (let expert = 0; expert < experts; expert++) {
      const rank = first + Math.floor(expert / 3);
      const name = `${prefix}mlp.experts.${expert}.`;
      add(`${name}gate_proj.weight`, 'f8e4m3', [2048, 7168], 0, rank, 1);
      add(`${name}up_proj.weight`, 'f8e4m3', [2048, 7168], 0, rank, 1);
      add(`${name}down_proj.weight`, 'f8e4m3', [7168, 2048], 1, rank, 1);
      add(`${name}gate_proj.weight_scale_inv`, 'f32', [16, 56], 0, rank, 1);
      add(`${name}up_proj.weight_scale_inv`, 'f32', [16, 56], 0, rank, 1);
      add(`${name}down_proj.weight_scale_inv`, 'f32', [56, 16], 1, rank, 1);
    }
  }
  add('model.embed_tokens.weight', 'bf16', [163840, 7168], 0, 0, 128);
  add('lm_head.weight', 'bf16', [163840, 7168], 0, 15 * 128, 128);
  return list;
}

const rows = [];
for (let run = 0; run < Number(values.runs); run++) {
  const request = { tensors: tensors(), ...topology, cacheEntries: 0 };
  const start = performance.now();
  const plan = createPlan(request);
  const planned = performance.now();
  const program = plan.program(0);
  const done = performance.now();
  rows.push({
    tensors: request.tensors.length,
    patterns: plan.patterns,
    totalsAndDigestMs: Math.round(planned - start),
    program0Ms: Math.round(done - planned),
    moves: program.sends.length,
    rssMB: Math.round(process.memoryUsage().rss / 2 ** 20),
    wireGB: Math.round(plan.totals.wireBytes / 1e9),
  });
}
process.stdout.write(`${rows.map((row) => JSON.stringify(row)).join('\n')}\n`);
