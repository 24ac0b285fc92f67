// SPDX-License-Identifier: Apache-2.0
// Fake GPU packages in a temporary node_modules, and a machine that says what the case needs.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import { NcclExtError } from '../errors/nccl-ext-error.js';
import type { BackendChoice } from '../options/option-table.js';
import type { CudaName } from './cuda-package.js';
import { loadBackend } from './load.js';
import type { LoaderContext } from './loader-context.js';

export interface Fake {
  readonly version?: string;
  readonly config?: unknown;
  /** Text of package.json, instead of a sound one. */
  readonly manifest?: string;
  /** Text of index.js. */
  readonly code?: string;
}

export const working = `export const buildInfo = { version: '0.2.0', cudaMajor: 13 };
export function load() { return { info: { name: 'fake' } }; }`;

/** Removed after the tests of the file that imports this. */
const root = mkdtempSync(join(tmpdir(), 'nccl-ext-loader-'));
afterAll(() => rmSync(root, { recursive: true }));
let projects = 0;

/** A project with these packages installed; each has its own directory because Node caches what it resolved. */
export function project(packages: { readonly [N in CudaName]?: Fake }): string {
  projects += 1;
  const base = join(root, `project-${projects}`);
  mkdirSync(base);
  for (const [name, fake] of Object.entries(packages)) {
    const directory = join(base, 'node_modules', '@nccl-ext', name);
    mkdirSync(directory, { recursive: true });
    const manifest = {
      name: `@nccl-ext/${name}`,
      version: fake.version ?? '0.2.0',
      type: 'module',
      config: fake.config,
      exports: { '.': './index.js', './package.json': './package.json' },
    };
    writeFileSync(join(directory, 'package.json'), fake.manifest ?? JSON.stringify(manifest));
    writeFileSync(join(directory, 'index.js'), fake.code ?? working);
  }
  return join(base, 'package.json');
}

export function context(
  packages: Parameters<typeof project>[0],
  machine: { driver?: string; glibc?: string } = { glibc: '2.36' },
): LoaderContext {
  return {
    bases: [project(packages)],
    machine: { driver: () => machine.driver, glibc: () => machine.glibc },
    coreVersion: '0.2.0',
  };
}

export async function refusal(choice: BackendChoice, where: LoaderContext): Promise<NcclExtError> {
  try {
    await loadBackend(choice, where);
  } catch (error) {
    if (NcclExtError.is(error)) return error;
    throw error;
  }
  throw new Error('loaded');
}

export const throwing = (message: string): Fake => ({
  code: `export const buildInfo = {}; export function load() { throw new Error(${JSON.stringify(message)}); }`,
});
