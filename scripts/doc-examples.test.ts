// Examples in doc comments run, and what they claim in a comment behind an expression is what comes out.

import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as core from '@nccl-ext/core';
import * as ep from '@nccl-ext/ep';
import * as m2n from '@nccl-ext/m2n';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { withChecks } from './with-checks.js';

const packages = join(fileURLToPath(import.meta.url), '../../packages');
const AsyncFunction = (async () => {}).constructor as new (
  ...text: string[]
) => (...values: unknown[]) => Promise<void>;

interface Example {
  readonly file: string;
  readonly name: string;
  readonly code: string;
}

const examples = ['core', 'm2n', 'ep'].flatMap((name) => examplesOf(join(packages, name, 'src')));
const home = process.cwd();
const folder = mkdtempSync(join(tmpdir(), 'nccl-ext-examples-'));
let surroundings: Record<string, unknown>;

beforeAll(async () => {
  process.chdir(folder);
  surroundings = await makeSurroundings();
});

afterAll(async () => {
  await (surroundings.world as core.World).dispose();
  process.chdir(home);
  rmSync(folder, { recursive: true });
});

describe('examples in doc comments', () => {
  it.each(examples)('$name', async ({ file, code }) => {
    const own: Record<string, unknown> = await import(file);
    const scope: Record<string, unknown> = { ...core, ...m2n, ...ep, ...own, ...surroundings };
    // The block lets an example declare a name that the surroundings have too.
    const run = new AsyncFunction(...Object.keys(scope), `{ ${withChecks(code)} }`);
    await run(...Object.values(scope));
  });
});

function examplesOf(source: string): Example[] {
  return readdirSync(source, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts') && !/\.test/.test(path))
    .flatMap((path) => {
      const file = join(source, path);
      const found = [...readFileSync(file, 'utf8').matchAll(/\* ```ts\n([\s\S]*?)\n\s*\* ```/g)];
      return found.map(([, text], index) => ({
        file,
        name: `${relative(packages, file)} ${index + 1}`,
        code: text!.replace(/^\s*\* ?/gm, ''),
      }));
    });
}

/** The names that examples take for granted, small and real. */
async function makeSurroundings(): Promise<Record<string, unknown>> {
  const { layout, localWorld, mesh, shard } = core;
  const world = await localWorld({ ranks: 1, backend: 'embedded' });
  const comm = world.ranks[0]!;
  const rows = layout({ shape: [4, 8], dtype: 'f32', mesh: mesh({ tp: 1 }), placements: [shard(0)] });
  const plan = m2n.createPlan({ tensors: [{ name: 'w', source: rows, destination: rows }] });
  const [trainerBuffer, engineBuffer] = [comm.allocate(rows.bytes), comm.allocate(rows.bytes)];
  const transfer = await m2n.prepareTransfer(comm, plan, {
    sources: { w: trainerBuffer },
    destinations: { w: engineBuffer },
  });
  const model = await writeModel();
  const refit = m2n.refitTensors({
    model,
    rules: await m2n.findRules(model),
    from: { parallelism: 'tp=2' },
    to: { parallelism: 'tp=1' },
  });
  const cyclic = (block: number, rank: number) =>
    layout({
      shape: [8],
      dtype: 'u8',
      mesh: mesh({ tp: 2 }),
      placements: [shard(0, core.blockCyclic(block))],
    }).runs(rank)![0]!;
  const held = layout({
    shape: [96],
    dtype: 'u8',
    mesh: mesh({ tp: 1 }),
    placements: [shard(0, core.ranges([[0, 64]]))],
  });
  return {
    ...(await expertParallelism(comm)),
    expect,
    writeFile,
    console: { log() {}, error() {} },
    process: { env: {}, stderr: { write() {} }, stdout: { write() {} } },
    // No launcher and no GPU here.
    init: () =>
      core.init({
        env: { RANK: '0', WORLD_SIZE: '1', LOCAL_RANK: '0', LOCAL_WORLD_SIZE: '1' },
        backend: 'embedded',
      }),
    localWorld: (options: core.LocalWorldOptions) => localWorld({ backend: 'embedded', ...options }),
    refit: (request: m2n.RefitRequest) => m2n.refit({ backend: 'embedded', ...request }),
    world,
    comm,
    stream: comm.createStream(),
    buffer: comm.allocate(64),
    rows,
    columns: rows,
    qLayout: rows,
    kLayout: rows,
    held,
    plan,
    transfer,
    trainerBuffer,
    engineBuffer,
    model,
    rules: await m2n.findRules(model),
    from: { parallelism: 'tp=2' },
    to: { parallelism: 'tp=1' },
    trainerDocument: m2n.manifestOf(refit, 'source'),
    engineDocument: m2n.manifestOf(refit, 'destination'),
    engine: { pause() {}, resume() {} },
    a: cyclic(2, 0),
    b: cyclic(1, 1),
  };
}

/** What examples of expert parallelism speak of: a group of one rank, two tokens, and a layer. */
async function expertParallelism(comm: core.Communicator): Promise<Record<string, unknown>> {
  const group = await ep.createEpGroup(comm, {
    experts: 4,
    topK: 2,
    hidden: 8,
    dtype: 'bf16',
    maxTokensPerRank: 2,
  });
  const handle = group.createHandle({ layout: 'flat' });
  const layer = group.layer({ layout: 'packed', experts: ep.hostExperts(({ rows }) => rows) });
  const make = <D extends core.DType>(dtype: D, ...shape: number[]) => ep.allocateTensor(comm, dtype, shape);
  const topkIdx = make('i32', 2, 2);
  ep.viewTensor(topkIdx).set([0, 1, 2, 3]);
  const [tokens, result, received] = [make('bf16', 2, 8), make('bf16', 2, 8), make('bf16', 2, 8)];
  return { group, handle, layer, topkIdx, tokens, result, received, weights: make('f32', 2, 2) };
}

/** A model of one tensor in model.safetensors; returns its description. */
async function writeModel(): Promise<m2n.ModelDescription> {
  const shapes: Record<string, number[]> = {
    'model.embed_tokens.weight': [8, 4],
    'model.norm.weight': [4],
    'lm_head.weight': [8, 4],
  };
  const config = {
    model_type: 'qwen3',
    vocab_size: 8,
    num_hidden_layers: 1,
    hidden_size: 4,
    intermediate_size: 4,
    num_attention_heads: 2,
    num_key_value_heads: 2,
    head_dim: 2,
    tie_word_embeddings: false,
  };
  await writeFile('config.json', JSON.stringify(config));
  await m2n.writeCheckpoint(
    'model.safetensors',
    Object.entries(shapes).map(([name, shape]) => ({
      name,
      shape,
      dtype: 'bf16' as const,
      data: [new Uint8Array(shape.reduce((product, extent) => product * extent, 2))],
    })),
  );
  const checkpoint = await m2n.openCheckpoint('model.safetensors');
  try {
    return await m2n.describeCheckpoint(checkpoint);
  } finally {
    await checkpoint.dispose();
  }
}
