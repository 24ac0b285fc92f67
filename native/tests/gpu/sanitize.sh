#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# rank.mjs as two processes under the tools of compute-sanitizer. Processes, because the tools may run the kernels of one process one
# after the other, and a barrier's kernels need each other.
here=$(cd "$(dirname "$0")" && pwd)
export MASTER_ADDR=127.0.0.1 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 NCCL_EXT_TIMEOUT_MS=100000
status=0
# NCCL asks for kernels that it has for other GPUs only, and takes the error for an answer.
options() { [ "$1" = memcheck ] && echo --report-api-errors no; }
for tool in ${*:-memcheck racecheck synccheck}; do
  echo "== $tool"
  port=$((29811 + RANDOM % 1000))
  pids=()
  for rank in 0 1; do
    RANK=$rank LOCAL_RANK=$rank MASTER_PORT=$port NCCL_EXT_PORT=$port \
      timeout -k 5 110 compute-sanitizer --tool "$tool" $(options "$tool") --error-exitcode 9 node "$here/rank.mjs" &
    pids+=($!)
  done
  for pid in "${pids[@]}"; do wait "$pid" || { echo "$tool: FAILED with $?"; status=1; }; done
done
exit $status
