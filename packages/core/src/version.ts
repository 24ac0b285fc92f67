// SPDX-License-Identifier: Apache-2.0
// The version of this package, compared exactly with the version of a GPU backend before that is loaded.

/** Version of `@nccl-ext/core`; all packages of nccl-ext are released together under one version. */
export const version: string = '0.0.0';
