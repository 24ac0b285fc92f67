#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Conformance cases under a tool of compute-sanitizer: m2n-sanitize.sh memcheck|racecheck|synccheck|initcheck. A few of every kind: casts, rows and
# addresses that no vector fits, many tensors, many streams, forwarding between domains, graphs, hashes. Four processes, a rank each.
here=$(cd "$(dirname "$0")" && pwd)
cases=(
  'casts/all pairs' 'rows of 7 bytes' 'rows of 16 bytes' 'prime extents 127' 'memory that starts 7' 'groups/300 small'
  '200x200 bf16 dims 01 on 4' 'one mesh, rows to columns' 'a pool under pressure' 'thirty refits over three streams'
  'two plans take turns without' 'two trainers to two copies' 'captured before any run' 'replayed and hashed'
)
filter=$(IFS='|'; echo "${cases[*]}")
if [ "$1" = initcheck ]; then
  # The tool knows only what its own process wrote, so memory that peers fill looks empty to it: one rank, which moves to itself.
  exec env RANKS=1 "$here/sanitize.sh" initcheck nccl-ext selftest --backend cuda --group meshes,graphs,refusals --ranks 1
fi
exec env RANKS=4 "$here/sanitize.sh" "$1" nccl-ext selftest --backend cuda --ranks 4 --filter "$filter"
