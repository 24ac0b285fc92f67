// SPDX-License-Identifier: Apache-2.0
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ErrorCode, NcclExtError } from '@nccl-ext/core';
import { describe, expect, it } from 'vitest';
import { createPlan } from '../plan/create-plan.js';
import { joinSides } from './join-sides.js';
import { type Manifest, type ManifestTensor, manifestJsonSchema, parseManifest } from './manifest-schema.js';
import { manifestSide } from './manifest-side.js';
import { readManifest } from './read-manifest.js';

const manifest = (ranks: Manifest['ranks'], rest: Partial<Manifest> = {}): Manifest => ({
  format: 'nccl-ext.m2n.manifest',
  version: 1,
  ranks,
  ...rest,
});
/** Rank 0 with these tensors. */
const one = (tensors: ManifestTensor[], rest: Partial<Manifest> = {}) =>
  manifest([{ rank: 0, tensors }], rest);
const box = (start: number[], size: number[]) => ({ start, size });
const whole = (name: string, shape: number[], source = name): ManifestTensor => ({
  name,
  dtype: 'BF16',
  shape,
  pieces: [
    {
      source,
      global: box(
        shape.map(() => 0),
        shape,
      ),
    },
  ],
});

function refusal(work: () => unknown): NcclExtError {
  try {
    work();
  } catch (error) {
    if (NcclExtError.is(error)) return error;
    throw error;
  }
  throw new Error('was accepted');
}

describe('a transfer between manifests', () => {
  // Two trainer ranks hold rows of q and k; one engine rank wants them fused, the columns of w behind them in one allocation.
  const trainer = manifest(
    [0, 1].map((rank) => ({
      rank,
      tensors: [
        { ...whole('q', [2, 4]), pieces: [{ source: 'q', global: box([rank * 2, 0], [2, 4]) }] },
        { ...whole('k', [1, 4]), pieces: [{ source: 'k', global: box([rank, 0], [1, 4]) }] },
        { ...whole('w', [3, 4]), pieces: [{ source: 'w', global: box([0, rank * 4], [3, 4]) }] },
      ],
    })),
  );
  const engine = one([
    {
      name: 'qk',
      dtype: 'bf16',
      shape: [6, 4],
      allocation: 'pool',
      offset: 16,
      pieces: [
        { source: 'q', global: box([0, 0], [4, 4]), local: box([0, 0], [4, 4]) },
        { source: 'k', global: box([0, 0], [2, 4]), local: box([4, 0], [2, 4]) },
      ],
    },
    {
      name: 'w',
      dtype: 'bf16',
      shape: [3, 8],
      strides: [32, 2],
      allocation: 'pool',
      offset: 64,
      pieces: [{ source: 'w', global: box([0, 0], [3, 8]) }],
    },
  ]);

  it('moves every piece to its place', () => {
    const joined = joinSides(
      manifestSide(trainer, 'source'),
      manifestSide(engine, 'destination', { firstRank: 2 }),
    );
    expect(joined.worldSize).toBe(3);
    expect(joined.unused).toEqual([]);
    const plan = createPlan(joined);
    expect(plan.totals.wireBytes).toBe(2 * (16 + 8 + 24));
    const [pool, ...others] = joined.destinationStorages(2);
    expect(others).toEqual([]);
    expect(pool).toMatchObject({ storage: 'pool', bytes: 144, shape: [144], dtype: 'u8' });
    expect(pool!.pieces.map(({ name, byteOffset, part }) => [name, byteOffset, part.byteStrides])).toEqual([
      ['q', 16, [8, 2]],
      ['k', 48, [8, 2]],
      ['w', 64, [32, 2]],
    ]);
    expect(joined.sourceStorages(1).map(({ storage, bytes }) => [storage, bytes])).toEqual([
      ['q', 16],
      ['k', 8],
      ['w', 24],
    ]);
  });

  it('infers extents from both sides, or takes the declared ones', () => {
    const larger = { ...trainer, globals: { q: [6, 4] } };
    const shapeOf = (source: Manifest) =>
      joinSides(manifestSide(source, 'source'), manifestSide(engine, 'destination', { firstRank: 2 }))
        .tensors[0]!.source[0]!.pattern.shape;
    expect(shapeOf(trainer)).toEqual([4, 4]);
    expect(shapeOf(larger)).toEqual([6, 4]);
  });

  it('names what the destination does not want', () => {
    const joined = joinSides(
      manifestSide(trainer, 'source'),
      manifestSide(one([whole('q', [4, 4])]), 'destination', { firstRank: 2 }),
    );
    expect(joined.unused).toEqual(['k', 'w']);
  });

  it('stacks experts: a local dimension of size 1 has no global counterpart', () => {
    const experts = one([
      {
        name: 'w13',
        dtype: 'bf16',
        shape: [2, 3, 4],
        pieces: ['e0', 'e1'].map((source, i) => ({
          source,
          global: box([0, 0], [3, 4]),
          local: box([i, 0, 0], [1, 3, 4]),
        })),
      },
    ]);
    const source = one([whole('e0', [3, 4]), whole('e1', [3, 4])]);
    const joined = joinSides(
      manifestSide(source, 'source'),
      manifestSide(experts, 'destination', { firstRank: 1 }),
    );
    expect(joined.destinationStorages(1)[0]!.pieces.map(({ byteOffset }) => byteOffset)).toEqual([0, 24]);
    expect(createPlan(joined).totals.wireBytes).toBe(48);
  });

  it('an alias is another name at the source, and nothing more to write at the destination', () => {
    const tied = (pieces: ManifestTensor['pieces']) =>
      one([
        whole('embed', [4, 2]),
        { ...whole('head', [4, 2]), allocation: 'embed', alias: 'embed', pieces },
      ]);
    const source = tied([{ source: 'head', global: box([0, 0], [4, 2]) }]);
    const apart = one([whole('embed', [4, 2]), whole('head', [4, 2])]);
    const both = joinSides(
      manifestSide(source, 'source'),
      manifestSide(apart, 'destination', { firstRank: 1 }),
    );
    expect(createPlan(both).totals.wireBytes).toBe(32);
    for (const pieces of [undefined, source.ranks[0]!.tensors[1]!.pieces]) {
      const joined = joinSides(
        manifestSide(apart, 'source'),
        manifestSide(tied(pieces), 'destination', { firstRank: 1 }),
      );
      expect(joined.tensors.map(({ name }) => name)).toEqual(['embed']);
      expect(joined.unused).toEqual(['head']);
    }
  });

  it('tensors that lie alike share their pattern', () => {
    const source = one([whole('a', [4]), whole('b', [4])]);
    const { tensors } = joinSides(
      manifestSide(source, 'source'),
      manifestSide(source, 'destination', { firstRank: 1 }),
    );
    expect(tensors[0]!.source[0]!.pattern).toBe(tensors[1]!.source[0]!.pattern);
  });
});

describe('refused, with rank, tensor and field', () => {
  const wrong = (document: Manifest) => refusal(() => manifestSide(document, 'source'));
  const tensor = (rest: Partial<ManifestTensor>) => one([{ ...whole('t', [2, 3]), ...rest }]);
  const cases: [title: string, document: Manifest, code: ErrorCode, words: RegExp][] = [
    [
      'a rank twice',
      manifest([
        { rank: 1, tensors: [] },
        { rank: 1, tensors: [] },
      ]),
      'ERR_MANIFEST',
      /rank 1 \(ranks\[1\]\.rank\): the rank occurs twice/,
    ],
    [
      'a rank outside the world',
      manifest([{ rank: 2, tensors: [] }], { worldSize: 2 }),
      'ERR_MANIFEST',
      /rank 2 \(ranks\[0\]\.rank\): worldSize is 2/,
    ],
    [
      'a name twice',
      one([whole('t', [2]), whole('t', [2])]),
      'ERR_MANIFEST',
      /tensor "t" \(ranks\[0\]\.tensors\[1\]\): .*two tensors/,
    ],
    [
      'an unknown dtype',
      tensor({ dtype: 'FP99' }),
      'ERR_MANIFEST',
      /tensors\[0\]\.dtype\): dtype "FP99" is not known/,
    ],
    ['too few strides', tensor({ strides: [2] }), 'ERR_MANIFEST', /tensors\[0\]\.strides\): .*\(2\), got 1/],
    [
      'strides that fold',
      tensor({ strides: [4, 2] }),
      'ERR_MANIFEST',
      /strides \[4, 2\] of shape \[2, 3\] put two elements on one byte/,
    ],
    [
      'an allocation twice',
      manifest([
        {
          rank: 0,
          tensors: [],
          allocations: [
            { name: 'a', bytes: 1 },
            { name: 'a', bytes: 1 },
          ],
        },
      ]),
      'ERR_MANIFEST',
      /allocations\[1\]\): the name "a" occurs twice/,
    ],
    [
      'an allocation that is not declared',
      manifest([
        {
          rank: 0,
          tensors: [{ ...whole('t', [2]), allocation: 'b' }],
          allocations: [{ name: 'a', bytes: 9 }],
        },
      ]),
      'ERR_MANIFEST',
      /allocation "b" is not among/,
    ],
    [
      'a tensor behind the end of its allocation',
      manifest([
        {
          rank: 0,
          tensors: [{ ...whole('t', [4]), allocation: 'a', offset: 2 }],
          allocations: [{ name: 'a', bytes: 9 }],
        },
      ]),
      'ERR_MANIFEST',
      /tensors\[0\]\.offset\): it ends at byte 10, but allocation "a" has 9/,
    ],
    [
      'two tensors on the same bytes',
      one([
        { ...whole('t', [4]), allocation: 'a' },
        { ...whole('u', [4]), allocation: 'a', offset: 6 },
      ]),
      'ERR_OVERLAP',
      /tensor "u" \(ranks\[0\]\.tensors\[1\]\.offset\): shares bytes of allocation "a" with tensor "t".*"alias": "t"/s,
    ],
    [
      'an alias of nothing',
      one([{ ...whole('t', [4]), alias: 'u' }]),
      'ERR_MANIFEST',
      /tensors\[0\]\.alias\): "u" is no tensor/,
    ],
    ['an alias of an alias', one([{ ...whole('t', [4]), alias: 't' }]), 'ERR_MANIFEST', /an alias itself/],
    [
      'an alias of other memory',
      one([whole('t', [4]), { ...whole('u', [4]), alias: 't' }]),
      'ERR_MANIFEST',
      /allocation, offset, dtype, shape and strides must be those of "t"/,
    ],
    [
      'no pieces',
      tensor({ pieces: undefined }),
      'ERR_MANIFEST',
      /tensors\[0\]\.pieces\): pieces are missing/,
    ],
    [
      'a local box outside',
      tensor({ pieces: [{ source: 's', global: box([0, 0], [2, 3]), local: box([1, 0], [2, 3]) }] }),
      'ERR_MANIFEST',
      /pieces\[0\]\.local\): start \[1, 0\] and size \[2, 3\] do not lie in the shape \[2, 3\]/,
    ],
    [
      'a local box of other rank',
      tensor({ pieces: [{ source: 's', global: box([0], [2]), local: box([0], [2]) }] }),
      'ERR_MANIFEST',
      /pieces\[0\]\.local/,
    ],
    [
      'sizes that differ',
      tensor({ pieces: [{ source: 's', global: box([0, 0], [3, 2]) }] }),
      'ERR_MANIFEST',
      /pieces\[0\]\): sizes of global \[3, 2\] and local \[2, 3\] differ/,
    ],
    [
      'start and size of different length',
      tensor({ pieces: [{ source: 's', global: box([0], [2, 3]) }] }),
      'ERR_MANIFEST',
      /pieces\[0\]\)/,
    ],
    [
      'two pieces on the same elements',
      tensor({
        pieces: [
          { source: 's', global: box([0, 0], [2, 2]), local: box([0, 0], [2, 2]) },
          { source: 's', global: box([0, 2], [2, 2]), local: box([0, 1], [2, 2]) },
        ],
      }),
      'ERR_OVERLAP',
      /tensor "t" \(ranks\[0\]\.tensors\[0\]\.pieces\[1\]\.local\): \[0:2, 1:3\] overlaps \[0:2, 0:2\] of pieces\[0\]/,
    ],
    [
      'another dtype on another rank',
      manifest([
        { rank: 0, tensors: [whole('t', [2])] },
        { rank: 1, tensors: [{ ...whole('t', [2]), dtype: 'F32' }] },
      ]),
      'ERR_MANIFEST',
      /rank 1, tensor "t" .*has t as f32, but rank 0 has it as bf16/,
    ],
    [
      'another number of dimensions',
      one([whole('t', [2]), whole('u', [2, 1], 't')]),
      'ERR_MANIFEST',
      /has 2 dimensions of t, which has 1/,
    ],
    [
      'a box outside the declared extents',
      one([whole('t', [4])], { globals: { t: [3] } }),
      'ERR_MANIFEST',
      /pieces\[0\]\.global\): reaches to 4 in dimension 0 of t, whose declared extents are \[3\]/,
    ],
  ];
  it.each(cases)('%s', (_title, document, code, words) => {
    const error = wrong(document);
    expect(error.code).toBe(code);
    expect(error.message).toMatch(words);
    expect(error.rank).toBeTypeOf('number');
    expect(error.field).toMatch(/^ranks\[/);
  });

  const join2 = (source: Manifest, destination: Manifest) =>
    refusal(() =>
      joinSides(manifestSide(source, 'source'), manifestSide(destination, 'destination', { firstRank: 4 })),
    );
  it('what no source has', () => {
    const missing = join2(one([whole('weight', [4])]), one([whole('wieght', [4])]));
    expect(missing.code).toBe('ERR_COVERAGE');
    expect(missing.message).toMatch(
      /rank 0, tensor "wieght" \(ranks\[0\]\.tensors\[0\]\.pieces\[0\]\): wants "wieght".*"weight"/,
    );
    const hole = one([
      { ...whole('t', [2, 3]), pieces: [{ source: 't', global: box([0, 0], [2, 3]) }] },
      { ...whole('u', [2, 3]), pieces: [{ source: 't', global: box([2, 1], [2, 3]) }] },
    ]);
    const part = join2(hole, one([whole('t', [4, 4])]));
    expect(part.code).toBe('ERR_COVERAGE');
    expect(part.message).toMatch(/wants t\[0:4, 0:4\], of which no source rank has \[.*\]/);
    expect(join2(one([]), one([whole('t', [1])])).message).toMatch(/the source has no tensors/);
  });

  it('sides that mean different tensors', () => {
    const error = join2(
      one([whole('t', [4])], { globals: { t: [8] } }),
      one([whole('t', [4])], { globals: { t: [4] } }),
    );
    expect(error.code).toBe('ERR_SHAPE_MISMATCH');
    expect(error.message).toMatch(/tensor "t": the source has \[8\], the destination \[4\]/);
    expect(join2(one([whole('t', [4])]), one([whole('t', [4, 1])])).code).toBe('ERR_SHAPE_MISMATCH');
  });

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
