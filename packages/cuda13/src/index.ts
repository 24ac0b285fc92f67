// SPDX-License-Identifier: Apache-2.0
// The CUDA 13 backend: loads one native addon that was built ahead of time. Nothing is compiled or downloaded on the user's machine.

import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Backend, BuildInfo, LoadOptions, Probe } from '@nccl-ext/core/contract';

interface Addon {
  createBackend(version: string, options: LoadOptions): Backend;
  probe(options: LoadOptions): Probe;
}

const root = new URL('../', import.meta.url);
const prebuilds = new URL(`prebuilds/${process.platform}-${process.arch}/`, root);
const { version } = readJson(new URL('package.json', root)) as { readonly version: string };

/**
 * Loads the native addon; throws what dlopen says. Driver and NCCL are looked for when the first rank is made.
 *
 * The options win over NCCL_EXT_NCCL_LIBRARY and NCCL_HOME of the environment. NCCL is loaded once per process, by its first rank: a world
 * that names another library afterwards, in this thread or another one, gets ERR_INVALID_STATE.
 */
export function load(options: LoadOptions = {}): Backend {
  return loadAddon().createBackend(version, options);
}

/** Driver, GPUs and NCCL of this machine, for `doctor`; throws as {@link load}. */
export function probe(options: LoadOptions = {}): Probe {
  return loadAddon().probe(options);
}

/** How the addon was built; only the version when there is none for this platform. */
export const buildInfo: BuildInfo = { version, ...readBuild(new URL('build.json', prebuilds)) };

function loadAddon(): Addon {
  return createRequire(import.meta.url)(new URL('nccl_ext.node', prebuilds).pathname);
}

function readBuild(file: URL): object {
  return existsSync(file) ? (readJson(file) as object) : {};
}

function readJson(file: URL): unknown {
  return JSON.parse(readFileSync(file, 'utf8'));
}
