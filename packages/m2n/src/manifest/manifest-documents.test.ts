// SPDX-License-Identifier: Apache-2.0
// Documents of another form are refused; the schema file and the documentation have the right one.

import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createPlan } from '../plan/create-plan.js';
import { refusal } from '../refusal.test-util.js';
import { joinSides } from './join-sides.js';
import { manifestJsonSchema, parseManifest } from './manifest-schema.js';
import { manifestSide } from './manifest-side.js';
import { readManifest } from './read-manifest.js';
import { one, tensor, whole } from './small-manifests.test-util.js';

describe('refused, with rank, tensor and field', () => {
  it('documents of another form', async () => {
    const form = (json: unknown) => refusal(() => parseManifest(json, 'engine.json'));
    expect(form({ format: 'x' }).code).toBe('ERR_MANIFEST');
    expect(form({ ...one([]), version: 2 }).message).toMatch(/engine\.json.*version/s);
    expect(form(tensor({ offset: -1 })).message).toMatch(/ranks\[0\]\.tensors\[0\]\.offset/);
    expect(form(tensor({ shape: [1.5] })).message).toMatch(/ranks\[0\]\.tensors\[0\]\.shape\[0\]/);
    expect(form({ ...one([]), extra: 1 }).message).toMatch(/extra/);
    const folder = await mkdtemp(join(tmpdir(), 'nccl-ext-manifest-'));
    const file = join(folder, 'm.json');
    await writeFile(file, JSON.stringify(one([whole('t', [2])])));
    expect(await readManifest(file)).toEqual(one([whole('t', [2])]));
    await writeFile(file, '{"format":1,"format":2}');
    await expect(readManifest(file)).rejects.toThrow(/format occurs twice/);
    await writeFile(file, '{');
    await expect(readManifest(file)).rejects.toMatchObject({ code: 'ERR_MANIFEST' });
    await rm(folder, { recursive: true });
  });
});

it('the JSON schema file is the schema', async () => {
  const file = new URL('../../schemas/manifest.schema.json', import.meta.url);
  expect(JSON.parse(await readFile(file, 'utf8'))).toEqual(manifestJsonSchema());
});

it('the documents of docs/manifest.md plan to what it says', async () => {
  const text = await readFile(new URL('../../../../docs/manifest.md', import.meta.url), 'utf8');
  const documentOf = (role: string) =>
    parseManifest(JSON.parse(new RegExp(`\`\`\`json ${role}\n(.*?)\`\`\``, 's').exec(text)![1]!), role);
  const source = manifestSide(documentOf('source'), 'source');
  const destination = manifestSide(documentOf('destination'), 'destination', { firstRank: 2 });
  const plan = createPlan(joinSides(source, destination));
  expect(plan.totals.wireBytes).toBe(Number(/plan\.totals\.wireBytes; \/\/ (\d+)/.exec(text)![1]));
});
