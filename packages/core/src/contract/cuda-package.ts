// SPDX-License-Identifier: Apache-2.0
// What @nccl-ext/cuda12 and @nccl-ext/cuda13 export: a loader of the native addon, what it finds here, and how it was built.

import type { Backend } from './backend.js';
import type { Outcome } from './outcome.js';

/** How a package was built; `doctor` prints all of it. */
export interface BuildInfo {
  readonly version: string;
  readonly [fact: string]: unknown;
}

/** Where NCCL is, as the options of the same names say it. The first rank of a process decides; another place later is ERR_INVALID_STATE. */
export interface LoadOptions {
  readonly ncclLibrary?: string;
  readonly ncclHome?: string;
}

/** One GPU, as the driver describes it. */
export interface ProbedDevice {
  readonly index: number;
  readonly name: string;
  readonly uuid: string;
  /** As in `9.0`. */
  readonly computeCapability: string;
  readonly multiprocessors: number;
  readonly memoryBytes: number;
  /** GPUs whose memory this one reads and writes directly. */
  readonly peers: readonly number[];
}

/** What the machine has, asked without making a rank. */
export interface Probe {
  /** `cuda` is the newest that the driver runs, as in `13.0`. */
  readonly driver: Outcome<{ readonly cuda: string; readonly devices: number }>;
  /** Empty when the driver fails. */
  readonly devices: readonly ProbedDevice[];
  /** `cudaMajor` is the one NCCL was built with, 0 when it does not say. */
  readonly nccl: Outcome<{ readonly path: string; readonly version: string; readonly cudaMajor: number }>;
}

/** The exports of a CUDA package. */
export interface CudaPackage {
  /** Loads the native addon; throws what dlopen says. */
  load(options?: LoadOptions): Backend;
  /** Driver and NCCL of this machine, for `doctor`; throws as `load`. Absent: the package cannot tell. */
  probe?(options?: LoadOptions): Probe;
  readonly buildInfo: BuildInfo;
}
