#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs a command under an MPS server of its own, so that processes share a GPU at the same time instead of taking slices in turn.
#   with-mps.sh command [argument ...]
command -v nvidia-cuda-mps-control >/dev/null || { echo 'nvidia-cuda-mps-control is not here'; exit 2; }
export CUDA_MPS_PIPE_DIRECTORY=$(mktemp -d) CUDA_MPS_LOG_DIRECTORY=$(mktemp -d)
stop() {
  echo quit | timeout 20 nvidia-cuda-mps-control
  rm -rf "$CUDA_MPS_PIPE_DIRECTORY" "$CUDA_MPS_LOG_DIRECTORY"
}
trap stop EXIT
nvidia-cuda-mps-control -d || exit 2
trap 'exit 143' TERM
"$@" &
wait $!
