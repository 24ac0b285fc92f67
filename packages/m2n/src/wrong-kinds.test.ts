// SPDX-License-Identifier: Apache-2.0
// Public functions name the argument that is of the wrong kind; no TypeError comes from inside.

import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { layout, mesh, NcclExtError, shard } from '@nccl-ext/core';
import { describe, expect, it } from 'vitest';
import { describeCheckpoint, describeModel, modelFromJson, namedModel } from './model/describe-model.js';
import { parallelism } from './parallel/parallelism.js';
import { createPlan } from './plan/create-plan.js';
import { planFromJSON } from './plan/json/stored-plan.js';
import { patternOfBoxes } from './plan/pattern-of-boxes.js';
import { patternOf } from './plan/pattern-of-layout.js';
import { sidePattern } from './plan/side-pattern.js';
import { Publication } from './publish/publication.js';
import { planRefit, type RefitRequest, refit } from './refit/refit.js';
import { openCheckpoint } from './safetensors/open-checkpoint.js';
import { writeCheckpoint } from './safetensors/write-checkpoint.js';
import { reshard } from './transfer/reshard.js';

const oddities: readonly unknown[] = [undefined, null, true, Number.NaN, 1n, 'x', [], [null], {}, () => 1];
const rows = layout({ shape: [4], dtype: 'f32', mesh: mesh({ tp: 2 }), placements: [shard(0)] });
const publication = new Publication();

const model = modelFromJson(
  { __config__: { model_type: 'qwen3' }, 'model.norm.weight': { shape: [4], dtype: 'F32' } },
  'tiny',
);

/** A refit each that is right but for one field. */
function requests(...fields: readonly (keyof RefitRequest)[]): Record<string, (value: never) => unknown> {
  const right = { model, from: 'tp=1', to: 'tp=1', backend: 'embedded', workers: 1 } as const;
  return Object.fromEntries(
    fields.map((field) => [`refit ${field}`, (v) => refit({ ...right, [field]: v })]),
  );
}

const calls: Record<string, (value: never) => unknown> = {
  createPlan,
  'createPlan tensors': (v) => createPlan({ tensors: v }),
  'createPlan tensor': (v) => createPlan({ tensors: [v] }),
  'createPlan source': (v) => createPlan({ tensors: [{ name: 'w', source: v, destination: rows }] }),
  'createPlan copies': (v) => createPlan({ tensors: [{ name: 'w', source: rows, destination: [v] }] }),
  'createPlan topology': (v) => createPlan({ tensors: [], topology: v }),
  'createPlan worldSize': (v) => createPlan({ tensors: [], worldSize: v }),
  planFromJSON,
  patternOf,
  sidePattern,
  'sidePattern parts': (v) => sidePattern({ dtype: 'f32', shape: [4], parts: [v] }),
  patternOfBoxes,
  'patternOfBoxes boxes': (v) => patternOfBoxes({ dtype: 'f32', shape: [4], boxes: [v] }),
  parallelism,
  namedModel,
  describeModel,
  describeCheckpoint,
  openCheckpoint,
  refit,
  planRefit,
  ...requests('model', 'rules', 'from', 'to', 'fromView', 'toView', 'colocated', 'cast', 'topology'),
  ...requests('checkpoint', 'verify', 'check', 'repeat', 'version', 'onProgress', 'signal', 'sourceDevices'),
  reshard: (v) => reshard(v, {}),
  'publish options': (v) => publication.publish(v),
  'writeCheckpoint path': (v) => (v === 'x' ? undefined : writeCheckpoint(v, [])),
};

describe.each(Object.entries(calls))('%s', (_, call) => {
  it('takes a value or throws an NcclExtError', async () => {
    for (const value of oddities) {
      try {
        await call(value as never);
      } catch (error) {
        expect(error).toSatisfy(NcclExtError.is);
      }
    }
  });
});

it('refit refuses wrong fields before it loads anything', async () => {
  const right = { model, from: 'tp=1', to: 'tp=1', backend: 'embedded', workers: 1 } as const;
  const wrong = [
    'verify',
    'check',
    'version',
    'transferSms',
    'onProgress',
    'signal',
    'checkpoint',
    'colocated',
  ];
  await expect(refit(right)).resolves.toMatchObject({ verified: false, hashed: false });
  for (const field of wrong)
    for (const value of [null, {}])
      await expect(refit({ ...right, [field]: value } as never)).rejects.toMatchObject({
        code: 'ERR_INVALID_ARGUMENT',
        field,
      });
});

it('a publication that was called wrongly runs afterwards', async () => {
  for (let i = 0; i < 2; i++)
    await expect(publication.publish({ version: 1 } as never)).rejects.toMatchObject({
      code: 'ERR_INVALID_ARGUMENT',
      field: 'transfer',
    });
});

it('writeCheckpoint refuses what are no entries, and leaves nothing', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'nccl-ext-wrong-'));
  try {
    const path = join(folder, 'x.safetensors');
    for (const entries of [
      undefined,
      null,
      5,
      'text',
      {},
      [null],
      ['x'],
      [{ name: 1 }],
      [{ name: 'a', dtype: 'f32' }],
    ])
      await expect(writeCheckpoint(path, entries as never)).rejects.toMatchObject({
        code: 'ERR_INVALID_ARGUMENT',
      });
    expect(await readdir(folder)).toEqual([]);
  } finally {
    await rm(folder, { recursive: true });
  }
});
