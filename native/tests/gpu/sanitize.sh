#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A rank's program as processes under a tool of compute-sanitizer: sanitize.sh [tool] [program [argument ...]], default memcheck rank.mjs;
# `nccl-ext` is the command. RANKS processes, default 2.
# Processes, because the tools may run the kernels of one process one after the other, and kernels that wait for peers need each other.
here=$(cd "$(dirname "$0")" && pwd)
tool=${1:-memcheck} program=${2:-rank.mjs} ranks=${RANKS:-2}
shift $(($# < 2 ? $# : 2))
[ "$program" = nccl-ext ] && program=$here/../../../node_modules/@nccl-ext/cli/bin/nccl-ext.mjs || program=$here/$program
export MASTER_ADDR=127.0.0.1 WORLD_SIZE=$ranks LOCAL_WORLD_SIZE=$ranks NCCL_EXT_TIMEOUT_MS=${NCCL_EXT_TIMEOUT_MS:-100000}
status=0
port=$((29811 + RANDOM % 1000))
pids=()
# NCCL asks for kernels that it has for other GPUs only, and takes the error for an answer.
[ "$tool" = memcheck ] && options='--report-api-errors no'
for ((rank = 0; rank < ranks; rank++)); do
  RANK=$rank LOCAL_RANK=$rank MASTER_PORT=$port NCCL_EXT_PORT=$port \
    timeout -k 5 220 compute-sanitizer --tool "$tool" $options --error-exitcode 9 node "$program" "$@" &
  pids+=($!)
done
for pid in "${pids[@]}"; do wait "$pid" || { echo "$tool: FAILED with $?"; status=1; }; done
exit $status
