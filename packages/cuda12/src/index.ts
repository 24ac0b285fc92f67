// SPDX-License-Identifier: Apache-2.0
// The CUDA 12 backend: loads one native addon that was built ahead of time. Nothing is compiled or downloaded on the user's machine.

import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Backend, BuildInfo, Outcome } from '@nccl-ext/core/contract';

/** What the machine has, asked without making a rank. */
export interface Probe {
  readonly driver: Outcome<{ readonly cuda: string; readonly devices: number }>;
  /** `cudaMajor` is the one NCCL was built with, 0 when it does not say. */
  readonly nccl: Outcome<{ readonly path: string; readonly version: string; readonly cudaMajor: number }>;
}

interface Addon {
  createBackend(version: string): Backend;
  probe(): Probe;
}

const root = new URL('../', import.meta.url);
const prebuilds = new URL(`prebuilds/${process.platform}-${process.arch}/`, root);
const { version } = readJson(new URL('package.json', root)) as { readonly version: string };

/** Loads the native addon; throws what dlopen says. Driver and NCCL are looked for when the first rank is made. */
export function load(): Backend {
  return loadAddon().createBackend(version);
}

/** Driver and NCCL of this machine, for `doctor`; throws as {@link load}. */
export function probe(): Probe {
  return loadAddon().probe();
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
