// SPDX-License-Identifier: Apache-2.0
// One clock for all threads: `performance.now()` counts from each thread's own start.

import { performance } from 'node:perf_hooks';

// Both read the same monotonic clock, so the difference is constant in a thread.
const offset = Number(process.hrtime.bigint()) / 1e6 - performance.now();

/** Milliseconds of the monotonic clock, comparable between the threads of this process. */
export function now(): number {
  return performance.now() + offset;
}
