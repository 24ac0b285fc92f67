// SPDX-License-Identifier: Apache-2.0
// What the loader expects of the packages @nccl-ext/cuda12 and @nccl-ext/cuda13.

import * as z from 'zod';
import type { BackendName } from '../contract/backend.js';

/** The backends that are packages of their own. */
export type CudaName = Exclude<BackendName, 'embedded'>;

export const cudaNames: readonly CudaName[] = ['cuda12', 'cuda13'];

/**
 * Oldest driver series of each CUDA major, for advice before a package is there to ask.
 * Source: docs.nvidia.com/deploy/cuda-compatibility, minor version compatibility.
 */
export const oldestDriver: Readonly<Record<CudaName, string>> = { cuda12: '525', cuda13: '580' };

/** The fields of its package.json that decide whether it can be loaded here. */
export interface CudaManifest {
  readonly version: string;
  readonly config?: { readonly glibc?: string | undefined; readonly driver?: string | undefined } | undefined;
}

// `>=2.34`, the only range in use, is kept as `2.34`.
const floor = z
  .string()
  .regex(/^>=\d+(\.\d+)*$/, 'Invalid floor: expected a text such as ">=2.34"')
  .transform((range) => range.slice(2))
  .optional();

export const cudaManifestSchema: z.ZodType<CudaManifest> = z.object({
  version: z.string().min(1),
  config: z.object({ glibc: floor, driver: floor }).optional(),
});
