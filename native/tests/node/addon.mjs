// SPDX-License-Identifier: Apache-2.0
// The addon under test: the one on fake CUDA and NCCL (scripts/native-test.mjs names both), or, on a machine with a GPU, the
// one that NCCL_EXT_TEST_ADDON names.

import { spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

export const onGpu = process.env.NCCL_EXT_TEST_ADDON !== undefined;

export const addonPath = resolve(
  process.env.NCCL_EXT_TEST_ADDON ??
    fileURLToPath(new URL('../../build/fake/nccl_ext_fake.node', import.meta.url)),
);

export const addon = createRequire(import.meta.url)(addonPath);

/** A backend with `ranks` ranks, disposed after `body`. */
export async function withRanks(ranks, body, timeoutMs = 5000) {
  const backend = addon.createBackend('0.0.0');
  const { runtime } = backend;
  const handles = take(await runtime.createLocalRanks({ ranks, timeoutMs, workers: 0 }));
  try {
    await body(runtime, handles);
  } finally {
    for (const handle of handles) await runtime.disposeRank(handle);
    await backend.dispose();
  }
}

/** The value of an outcome; throws what its record says. */
export function take(outcome) {
  if (!outcome.ok) throw new Error(outcome.error.detail);
  return outcome.value;
}

/** Runs a program that sees `addon` and `take`; resolves with its exit code, signal, output and the milliseconds it took. */
export function runProgram(body) {
  const module = JSON.stringify(import.meta.url);
  const program = `const { addon, addonPath, take } = await import(${module});\n${body}`;
  return runNode(['--input-type=module', '-e', program]);
}

/** Runs Node; resolves as runProgram. */
export async function runNode(words, env = process.env) {
  const begun = performance.now();
  const child = spawn(process.execPath, words, { env, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk) => {
      output += chunk;
    });
  }
  const [code, signal] = await new Promise((resolve) => child.on('close', (...end) => resolve(end)));
  return { code, signal, output, milliseconds: performance.now() - begun };
}
