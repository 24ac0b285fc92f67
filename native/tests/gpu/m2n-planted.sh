#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Whether memcheck would find an error in the transfer kernel: it writes to memory that was freed, and the tool must say so.
# One process with one rank: the kernel is the same for its own memory as for a peer's.
here=$(cd "$(dirname "$0")" && pwd)

found() { # way of copying
  local log
  log=$(TEST_PLANT=$1 timeout -k 5 100 compute-sanitizer --tool memcheck --report-api-errors no --error-exitcode 9 node "$here/m2n-plant.mjs" 2>&1)
  head -c 4000 <<<"$log"
  grep -q 'Invalid __global__ write' <<<"$log" && grep -q transferKernel <<<"$log"
}

found vector || { echo 'memcheck found nothing in copies by vectors'; exit 1; }
# Bulk copies are the copy engine's; whether the tool follows them depends on its version.
found bulk && echo '== bulk copies: found' || echo '== bulk copies: not seen by this tool'
exit 0
