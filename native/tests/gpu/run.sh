#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Self test of a bundle that scripts/gpu-bundle.mjs wrote: unpacks it into a temporary folder and runs steps on this machine's GPUs.
#   run.sh [step ...]      without names: every step but the sanitizers
# A step that hangs is killed; the table of results comes last. Logs go to $OUT (default: ./gpu-results).
bundle=$(cd "$(dirname "$0")" && pwd)
OUT=${OUT:-$PWD/gpu-results}
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
mkdir -p "$OUT"

tar -xJf "$bundle/tree.tar.xz" -C "$place" || exit 2
mkdir "$place/bin" "$place/lib"
xz -dc "$bundle/node.xz" >"$place/bin/node" || exit 2
xz -dc "$bundle/libnccl.so.2.xz" >"$place/lib/libnccl.so.2" || exit 2
chmod +x "$place/bin/node"
export PATH=$place/bin:$PATH
export NCCL_EXT_NCCL_LIBRARY=$place/lib/libnccl.so.2
export NCCL_MULTI_RANK_GPU_ENABLE=1 CUDA_MODULE_LOADING=EAGER CUDA_DEVICE_MAX_CONNECTIONS=32
# The driver's library and tools, where a container mounts them beside the usual places.
[ -d /usr/local/nvidia ] && export PATH=$PATH:/usr/local/nvidia/bin LD_LIBRARY_PATH=$LD_LIBRARY_PATH:/usr/local/nvidia/lib64
cd "$place" || exit 2

addon=$place/node_modules/@nccl-ext/cuda13/prebuilds/linux-x64/nccl_ext.node
tests=$place/native/tests
results=()
status=0

step() { # name, seconds, command ...
  local name=$1 seconds=$2 begun=$SECONDS code
  shift 2
  timeout -k 5 "$seconds" "$@" >"$OUT/$name.log" 2>&1
  code=$?
  [ $code -eq 0 ] || { status=1; echo "== $name: exit $code"; grep -vE '^\s*(✔|▶|ℹ)' "$OUT/$name.log" | head -c "${TAIL:-2500}"; }
  results+=("$(printf '%-18s exit %3d %5d s' "$name" "$code" $((SECONDS - begun)))")
}

run_step() {
  case $1 in
    machine) step machine 60 bash -c 'nvidia-smi --query-gpu=name,driver_version,memory.used --format=csv; uname -r; node -v; node -p "JSON.stringify(require(process.argv[1]).probe())" "$0"' "$addon" ;;
    doctor) step doctor 60 node node_modules/@nccl-ext/cli/bin/nccl-ext.mjs doctor ;;
    binding | lifetime | processes)
      NCCL_EXT_TEST_ADDON=$addon step "$1" "${LIMIT:-100}" node --expose-gc "$tests/node/$1.test.mjs" ;;
    world-*) NCCL_EXT_TEST_RANKS=${1#world-} step "$1" "${LIMIT:-100}" node "$tests/gpu/world.test.mjs" ;;
    launch) step launch "${LIMIT:-150}" node "$tests/gpu/launch.test.mjs" ;;
    launchers) step launchers 200 "$tests/gpu/launchers.sh" ;;
    sanitize) step sanitize 400 "$tests/gpu/sanitize.sh" ;;
    memcheck) step memcheck 130 "$tests/gpu/sanitize.sh" memcheck ;;
    *) echo "no step $1"; status=2 ;;
  esac
}

for name in ${*:-machine doctor binding world-2 world-4 world-8 processes launch launchers lifetime}; do run_step "$name"; done
echo '== results'
printf '%s\n' "${results[@]}"
exit $status
