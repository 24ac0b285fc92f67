// SPDX-License-Identifier: Apache-2.0
// A process that is lost in mid-transfer (../gpu/lost-rank.test.mjs) on the fakes: small tensors, and packages as users install them around
// the fake addon. Needs `npx tsc -b`.

import assert from 'node:assert/strict';
import { cpSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { addonPath, onGpu, runNode } from './addon.mjs';

const root = fileURLToPath(new URL('../../../', import.meta.url));

/** A project with the packages and the GPU test. */
function writeProject(folder) {
  const modules = join(folder, 'node_modules');
  for (const name of ['core', 'm2n', 'cuda13']) {
    for (const part of ['package.json', 'dist'])
      cpSync(join(root, 'packages', name, part), join(modules, '@nccl-ext', name, part), { recursive: true });
  }
  symlinkSync(realpathSync(join(root, 'packages/core/node_modules/zod')), join(modules, 'zod'));
  const prebuilds = join(modules, '@nccl-ext/cuda13/prebuilds', `${process.platform}-${process.arch}`);
  mkdirSync(prebuilds, { recursive: true });
  cpSync(addonPath, join(prebuilds, 'nccl_ext.node'));
  for (const file of ['lost-rank.test.mjs', 'lost-rank.mjs', 'lost-rank-refit.mjs'])
    cpSync(join(root, 'native/tests/gpu', file), join(folder, file));
  mkdirSync(join(folder, 'world'));
}

test('a process that is lost in mid-transfer is named by all others', {
  timeout: 300_000,
  skip: onGpu && 'needs the fakes',
}, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'lost-rank-'));
  try {
    writeProject(folder);
    const env = { ...process.env, FAKE_NCCL_FOLDER: join(folder, 'world'), TEST_ROWS: '64' };
    // Of this test's own runner.
    delete env.NODE_TEST_CONTEXT;
    const { code, output } = await runNode(['--test', join(folder, 'lost-rank.test.mjs')], env);
    assert.equal(code, 0, output);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
