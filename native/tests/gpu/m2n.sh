# SPDX-License-Identifier: Apache-2.0
# Steps that try M2N on one GPU, for run.sh, which sources this: the conformance cases with ranks as threads and as processes, lost ranks, a
# thousand of everything, sizes beyond 2^32 bytes, and the tools of compute-sanitizer. Each ends with its table.
m2n_cli="node node_modules/@nccl-ext/cli/bin/nccl-ext.mjs"

# Processes share a GPU at the same time under MPS only; without it they take slices in turn.
m2n_mps=
command -v nvidia-cuda-mps-control >/dev/null && m2n_mps=$tests/gpu/with-mps.sh

m2n_step() {
  case $1 in
    selftest-2 | selftest-4 | selftest-8) step "$1" 300 $m2n_cli selftest --backend cuda --ranks "${1#selftest-}" ;;
    selftest-processes) step "$1" 300 $m2n_mps $m2n_cli run -n 4 nccl-ext selftest --backend cuda ;;
    selftest-processes-8) step "$1" 300 $m2n_mps $m2n_cli run -n 8 nccl-ext selftest --backend cuda ;;
    selftest-slices) step "$1" 300 $m2n_cli run -n 4 nccl-ext selftest --backend cuda ;;
    lost-rank) test_file "$1" 200 gpu/lost-rank; return ;;
    lost-rank-mps) step "$1" 200 "$tests/gpu/with-mps.sh" env TEST_MPS=1 node --test-reporter=spec "$tests/gpu/lost-rank.test.mjs"; return ;;
    soak) step "$1" 240 $m2n_cli selftest --backend cuda --group soak --filter thousand ;;
    # NCCL starts a hundred times.
    soak-worlds) step "$1" 400 $m2n_cli selftest --backend cuda --group soak --filter "hundred worlds" ;;
    large) step "$1" 120 $m2n_cli selftest --backend cuda --group large --filter sampled ;;
    # These go through the host byte by byte.
    large-oracle) step "$1" 550 $m2n_cli selftest --backend cuda --group large --ranks 4 ;;
    m2n-planted) step "$1" 220 "$tests/gpu/m2n-planted.sh" ;;
    m2n-memcheck | m2n-racecheck | m2n-synccheck | m2n-initcheck) step "$1" 230 "$tests/gpu/m2n-sanitize.sh" "${1#m2n-}" ;;
    *) echo "no step $1"; status=2; return ;;
  esac
  tail -n 40 "$OUT/$1.log"
}
