// SPDX-License-Identifier: Apache-2.0
// What @nccl-ext/cuda12 and @nccl-ext/cuda13 export: a loader of the native addon, and how it was built.

import type { Backend } from './backend.js';

/** How a package was built; `doctor` prints all of it. */
export interface BuildInfo {
  readonly version: string;
  readonly [fact: string]: unknown;
}

/** The exports of a CUDA package. */
export interface CudaPackage {
  /** Loads the native addon; throws what dlopen says. */
  load(): Backend;
  readonly buildInfo: BuildInfo;
}
