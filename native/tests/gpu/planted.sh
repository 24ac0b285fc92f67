#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Whether memcheck would find an error in users' kernels: rank 0's write one byte behind the end of memory, and the tool must say so.
here=$(cd "$(dirname "$0")" && pwd)
# The tool ends rank 0 at the error; rank 1 must not wait for long.
export TEST_PLANTS=1 NCCL_EXT_TIMEOUT_MS=40000
log=$("$here/sanitize.sh" memcheck smoke-rank.mjs 2>&1) && { echo "$log"; echo 'memcheck found nothing'; exit 1; }
echo "$log"
grep -q 'Invalid __global__ write of size 1' <<<"$log" && grep -qE 'ep_dispatch|m2n_step' <<<"$log"
