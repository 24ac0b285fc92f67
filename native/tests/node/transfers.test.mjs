// SPDX-License-Identifier: Apache-2.0
// The conformance cases of M2N on the addon: planner, binding, checks, program and protocol together, every byte against the oracle.
// Needs `npx tsc -b`. CASES=all runs the long groups too, CASES=<text> those whose name has it.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runCases, selectCases } from '../../../packages/conformance/dist/index.js';
import { singleDomain } from '../../../packages/core/dist/topology/presets.js';
import { World } from '../../../packages/core/dist/world/world.js';
import { addon, onGpu, take } from './addon.mjs';

const text = process.env.CASES ?? '';
const selected =
  text === 'all' ? selectCases({ group: 'all' }) : selectCases(text === '' ? {} : { filter: text });
// Streams are threads on the fake runtime: more ranks than these take minutes.
const cases = selected.filter(({ ranks }) => ranks <= (onGpu ? 8 : 16));

/** A world of this addon's ranks. */
async function world({ ranks, timeoutMs = 20_000, transferPath = 'auto' }) {
  const backend = addon.createBackend('0.0.0');
  const handles = take(await backend.runtime.createLocalRanks({ ranks, timeoutMs, workers: 0 }));
  return new World(backend, handles, singleDomain(ranks), { timeoutMs, transferPath });
}

async function passes(t, cases, options) {
  const summary = await runCases(cases, { world, ...options });
  for (const { name, status, detail } of summary.cases) {
    if (status === 'skipped') t.diagnostic(`skipped ${name}: ${detail}`);
  }
  const failed = summary.cases.filter(({ status }) => status === 'failed');
  assert.deepEqual(
    failed.map(({ name, detail }) => `${name}: ${detail}`),
    [],
  );
  assert.ok(summary.passed > 0);
}

test(`${cases.length} conformance cases of M2N`, (t) => passes(t, cases, {}));

const moves = cases.filter(({ kind }) => kind === 'move');
test(`those of ${moves.length} reshards that copy engines can do alone`, (t) => passes(t, moves, { sms: 0 }));

// How bytes go is the same for all sizes and ratios: of those, these groups have many cases.
const many = ['mesh-2d', 'rank-ratio', 'tensor-size', 'three-dims', 'one-dim'];
const sent = cases.filter(({ group }) => !group.startsWith('ep') && (text !== '' || !many.includes(group)));

test(`${sent.length} conformance cases of M2N between ranks that send`, (t) =>
  passes(t, sent, { world: (request) => world({ ...request, transferPath: 'sendrecv' }) }));
