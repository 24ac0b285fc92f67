#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs rank.mjs under the launchers that this machine has: torchrun, whose own store holds MASTER_PORT, and Open MPI.
here=$(cd "$(dirname "$0")" && pwd)
status=0

launch() { # name of the launcher, then its command line
  command -v "$1" >/dev/null || { echo "$1: not here, not tried"; return; }
  echo "== $1"
  timeout -k 5 90 "$@" || { echo "$1: FAILED with $?"; status=1; }
}

launch torchrun --no-python --nproc-per-node 2 --master-addr 127.0.0.1 --master-port 29611 node "$here/rank.mjs"
export MASTER_ADDR=127.0.0.1 MASTER_PORT=29711
launch mpirun --allow-run-as-root --oversubscribe -n 2 -x MASTER_ADDR -x MASTER_PORT node "$here/rank.mjs"
exit $status
