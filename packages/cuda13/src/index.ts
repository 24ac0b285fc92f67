// SPDX-License-Identifier: Apache-2.0
// The CUDA 13 backend: loads one native addon that was built ahead of time. Nothing is compiled or downloaded on the user's machine.

import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { isMainThread } from 'node:worker_threads';
import type { Backend, BuildInfo, LoadOptions, Probe } from '@nccl-ext/core/contract';

interface Addon {
  createBackend(version: string): Backend;
  probe(): Probe;
}

const root = new URL('../', import.meta.url);
const prebuilds = new URL(`prebuilds/${process.platform}-${process.arch}/`, root);
const { version } = readJson(new URL('package.json', root)) as { readonly version: string };

/**
 * Loads the native addon; throws what dlopen says. Driver and NCCL are looked for when the first rank is made.
 *
 * The addon reads where NCCL is from the environment, so the options set NCCL_EXT_NCCL_LIBRARY and NCCL_HOME of this process,
 * and they stay set. A worker thread has only a copy of the environment: options that differ from it throw there.
 */
export function load({ ncclLibrary, ncclHome }: LoadOptions = {}): Backend {
  setVariable('NCCL_EXT_NCCL_LIBRARY', ncclLibrary);
  setVariable('NCCL_HOME', ncclHome);
  return loadAddon().createBackend(version);
}

/** Driver and NCCL of this machine, for `doctor`; throws as {@link load}. */
export function probe(): Probe {
  return loadAddon().probe();
}

/** How the addon was built; only the version when there is none for this platform. */
export const buildInfo: BuildInfo = { version, ...readBuild(new URL('build.json', prebuilds)) };

function setVariable(name: string, value: string | undefined): void {
  if (value === undefined || process.env[name] === value) return;
  if (!isMainThread) throw new Error(`a worker thread cannot set ${name} to ${JSON.stringify(value)}`);
  process.env[name] = value;
}

function loadAddon(): Addon {
  return createRequire(import.meta.url)(new URL('nccl_ext.node', prebuilds).pathname);
}

function readBuild(file: URL): object {
  return existsSync(file) ? (readJson(file) as object) : {};
}

function readJson(file: URL): unknown {
  return JSON.parse(readFileSync(file, 'utf8'));
}
