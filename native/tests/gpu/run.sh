#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Self test of a bundle that scripts/gpu-bundle.mjs wrote: unpacks it into a temporary folder and runs steps on this machine's GPUs.
#   run.sh [step ...]      without names: every step but nvlink (nvlink.sh) and the sanitizers. LIMIT: seconds per step
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
export NCCL_MULTI_RANK_GPU_ENABLE=1 CUDA_MODULE_LOADING=EAGER
# The driver's library and tools, where a container mounts them beside the usual places.
[ -d /usr/local/nvidia ] && export PATH=$PATH:/usr/local/nvidia/bin:/usr/local/cuda/bin LD_LIBRARY_PATH=$LD_LIBRARY_PATH:/usr/local/nvidia/lib64
cd "$place" || exit 2

addon=$(ls $place/node_modules/@nccl-ext/cuda1[23]/prebuilds/linux-x64/nccl_ext.node)
tests=$place/native/tests
results=()
status=0

step() { # name, seconds, command ...
  local name=$1 seconds=${LIMIT:-$2} begun=$SECONDS code
  shift 2
  timeout -k 5 "$seconds" "$@" >"$OUT/$name.log" 2>&1
  code=$?
  grep -aE '^# [0-9]+ ranks' "$OUT/$name.log"
  [ $code -eq 0 ] || { status=1; echo "== $name: exit $code"; excerpt "$OUT/$name.log" | head -c 3000; echo; }
  results+=("$(printf '%-26s exit %3d %5d s' "$name" "$code" $((SECONDS - begun)))")
}

# From the list of failed tests on, else the last lines.
excerpt() {
  if grep -aq 'failing tests:' "$1"; then
    grep -aE '^ *✖' "$1" | sort -u
    sed -n '/failing tests:/,$p' "$1" | grep -avE '^ *(at |✖)|^$'
  else tail -n 25 "$1"; fi
}

test_file() { # name, seconds, file, variable; under Node's test runner
  step "$1" "$2" ${4:+env "$4"} node --expose-gc --test-reporter=spec "$tests/$3.test.mjs"
}

refit_qwen() { # name, options of refit ...; the log is the JSON object
  local name=$1
  shift
  step "$name" 200 node node_modules/@nccl-ext/cli/bin/nccl-ext.mjs refit --backend cuda --model Qwen3-30B-A3B --repeat 3 --json "$@"
  cp "$OUT/$name.log" "$OUT/$name.json"
  cat "$OUT/$name.log"
}

run_step() {
  case $1 in
    machine) step machine 60 bash -c 'nvidia-smi --query-gpu=name,driver_version,memory.used --format=csv; uname -r; node -v; node -p "JSON.stringify(require(process.argv[1]).probe())" "$0"' "$addon" ;;
    doctor) step doctor 60 node node_modules/@nccl-ext/cli/bin/nccl-ext.mjs doctor; cat "$OUT/doctor.log" ;;
    copy-engines)
      test_file copy-engines-4 120 gpu/copy-engines TEST_RANKS=4
      test_file copy-engines-8 120 gpu/copy-engines TEST_RANKS=8
      step copy-engines-cases 300 node node_modules/@nccl-ext/cli/bin/nccl-ext.mjs selftest --backend cuda --ranks 8 --sms 0; tail -n 40 "$OUT/copy-engines-cases.log"
      step copy-engines-refit 120 node node_modules/@nccl-ext/cli/bin/nccl-ext.mjs refit --backend cuda --model Qwen3-0.6B --from pp=2 --to tp=1 --sms 0 --check --repeat 3; cat "$OUT/copy-engines-refit.log"
      [ "$(nvidia-smi -L | grep -c '^GPU ')" -lt 2 ] && return # copies and the start gates of ranks that share a GPU would wait for each other
      step copy-engines-bench 200 node node_modules/@nccl-ext/cli/bin/nccl-ext.mjs bench m2n --backend cuda --ranks 2 --sweep 64,0 --save "$OUT/copy-engines-bench.json"; cat "$OUT/copy-engines-bench.log" ;;
    sendrecv) step sendrecv 300 node node_modules/@nccl-ext/cli/bin/nccl-ext.mjs selftest --backend cuda --ranks 4 --path sendrecv; tail -n 40 "$OUT/sendrecv.log" ;;
    two-hosts) step two-hosts 300 "$tests/gpu/with-mps.sh" node node_modules/@nccl-ext/cli/bin/nccl-ext.mjs run -n 4 "$tests/gpu/two-hosts.mjs"; tail -n 40 "$OUT/two-hosts.log" ;;
    bench-m2n) step bench-m2n 200 node node_modules/@nccl-ext/cli/bin/nccl-ext.mjs bench m2n --backend cuda --sweep 8,13,16,28+4 --save "$OUT/bench-m2n.json"; cat "$OUT/bench-m2n.log" ;;
    bench-m2n-processes) step bench-m2n-processes 200 "$tests/gpu/with-mps.sh" node node_modules/@nccl-ext/cli/bin/nccl-ext.mjs run -n 8 nccl-ext bench m2n --backend cuda --save "$OUT/bench-m2n-processes.json"; cat "$OUT/bench-m2n-processes.log" ;;
    binding | processes) test_file "$1" 60 "node/$1" "NCCL_EXT_TEST_ADDON=$addon" ;;
    lifetime) test_file lifetime 120 node/lifetime "NCCL_EXT_TEST_ADDON=$addon" ;;
    smoke-processes) step smoke-processes 150 node node_modules/@nccl-ext/cli/bin/nccl-ext.mjs run -n 4 "$tests/gpu/smoke-rank.mjs"; cat "$OUT/smoke-processes.log" ;;
    smoke-memcheck | smoke-racecheck | smoke-synccheck) step "$1" 240 "$tests/gpu/sanitize.sh" "${1#smoke-}" smoke-rank.mjs ;;
    memcheck-planted) step memcheck-planted 240 "$tests/gpu/planted.sh" ;;
    smoke-*) test_file "$1" 240 gpu/smoke "TEST_RANKS=${1#smoke-}" ;;
    split-*) test_file "$1" 150 gpu/split "TEST_RANKS=${1#split-}" ;;
    world-*) test_file "$1" 120 gpu/world "TEST_RANKS=${1#world-}" ;;
    foreign) test_file foreign 200 gpu/foreign-memory ;;
    run) step run 100 node node_modules/@nccl-ext/cli/bin/nccl-ext.mjs run -n 4 "$tests/gpu/rank.mjs"; cat "$OUT/run.log" ;;
    launch) test_file launch 200 gpu/launch ;;
    bad-input) step bad-input 150 node --test --test-reporter=spec "$tests/gpu/bad-input.test.mjs" "$tests/gpu/bad-memory.test.mjs" ;;
    refit-values) test_file refit-values 120 node/refit "NCCL_EXT_TEST_ADDON=$addon" ;;
    # The checkpoint of `npm run demo`, which is written here because nothing that large is carried.
    refit-demo)
      step refit-demo-checkpoint 120 node -e 'require("fs").mkdirSync("demo"); import("./scripts/demo-checkpoint.mjs").then((m) => m.writeDemoCheckpoint("demo/model.safetensors"))'
      step refit-demo 120 node node_modules/@nccl-ext/cli/bin/nccl-ext.mjs refit --backend cuda --checkpoint demo --from tp=4 --to tp=2,dp=2 --verify --repeat 3 --report "$OUT/refit-demo.html"
      cat "$OUT/refit-demo.log" ;;
    # 61 GB from four ranks to four, as a trainer with experts and stages feeds an engine; on one GPU both sides take 122 GB.
    refit-qwen) refit_qwen refit-qwen --sms 28,4 --from pp=2,tp=2,ep=2 --to tp=4 --check ;;
    refit-qwen-same) refit_qwen refit-qwen-same --sms 28,4 --from tp=4 --to tp=4 --check ;;
    refit-qwen-hashed) refit_qwen refit-qwen-hashed --from pp=2,tp=2,ep=2 --to tp=4 --verify ;;
    pytorch) step pytorch 200 node docs/examples/pytorch/share.mjs; cat "$OUT/pytorch.log" ;;
    launchers) step launchers 200 "$tests/gpu/launchers.sh" ;;
    selftest-* | lost-rank* | soak | large* | m2n-*) . "$tests/gpu/m2n.sh"; m2n_step "$1" ;;
    nvlink) . "$tests/gpu/nvlink.sh"; nvlink_all ;;
    memcheck | racecheck | synccheck) step "$1" 120 "$tests/gpu/sanitize.sh" "$1" rank.mjs ;;
    *) echo "no step $1"; status=2 ;;
  esac
}

for name in ${*:-machine doctor binding world-2 world-4 world-8 split-2 split-4 smoke-2 smoke-4 smoke-8 smoke-processes foreign bad-input processes launch launchers lifetime pytorch selftest-2 selftest-4 selftest-8 selftest-processes refit-values refit-demo refit-qwen refit-qwen-same refit-qwen-hashed lost-rank soak large copy-engines bench-m2n bench-m2n-processes}; do run_step "$name"; done
echo '== results'
printf '%s\n' "${results[@]}"
exit $status
