# SPDX-License-Identifier: Apache-2.0
# Steps for GPUs that NVLink connects, for run.sh, which sources this: everything with 2, 4 and 8 GPUs, as far as they are here. With one GPU
# the same steps run on it with ranks that share it. NVLINK_COUNTS="2 8" names the counts, NVLINK_STEPS="bench-threads refit" the steps,
# NVLINK_SIZES=1GiB,4GiB the tensors and NVLINK_SWEEP=8,16 the SMs to compare. NVLink multicast (NVLS) stays off. Tables and JSON lie in
# $OUT, one of each per step.
export NCCL_NVLS_ENABLE=0

nvlink_here=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU ')
nvlink_cli="node node_modules/@nccl-ext/cli/bin/nccl-ext.mjs"

# KiB that left and reached each GPU over NVLink since the driver started: "GPU 0 tx 123 rx 456", a line per GPU. Nothing where the
# counters cannot be read.
nvlink_counters() {
  timeout 20 nvidia-smi nvlink -gt d 2>/dev/null | awk '
    /^GPU [0-9]+:/ { gpu = $2 + 0; next }
    /Data Tx:/ && $5 ~ /^[0-9]+$/ { tx[gpu] += $5; seen[gpu] = 1 }
    /Data Rx:/ && $5 ~ /^[0-9]+$/ { rx[gpu] += $5; seen[gpu] = 1 }
    END { for (gpu in seen) printf "GPU %d tx %.0f rx %.0f\n", gpu, tx[gpu], rx[gpu] }' | sort -k2n
}

# A step between two readings of the counters; what they grew by goes to $OUT/<name>.nvlink.
nvlink_step() { # name, seconds, command ...
  local name=$1
  nvlink_counters >"$OUT/$name.before"
  step "$@"
  nvlink_counters >"$OUT/$name.after"
  paste "$OUT/$name.before" "$OUT/$name.after" |
    awk 'NF == 12 { printf "GPU %d  sent %.3f GiB  received %.3f GiB over NVLink\n", $2, ($10 - $4) / 2^20, ($12 - $6) / 2^20 }' \
      >"$OUT/$name.nvlink"
  rm -f "$OUT/$name.before" "$OUT/$name.after"
  tail -n 40 "$OUT/$name.log"
  cat "$OUT/$name.nvlink"
}

nvlink_one() { # GPUs, step
  local gpus=$1 one spread half mps= sweep=4,8,16,32
  local name=nvlink-$1-$2
  export CUDA_VISIBLE_DEVICES=$(seq -s, 0 $((gpus - 1)))
  # One rank per GPU, and four as where several serve one; on a single GPU two and eight that share it.
  one=$gpus spread=$((4 * gpus)) half=$((gpus / 2))
  # Processes share a GPU at the same time under MPS only.
  if [ "$gpus" -eq 1 ]; then one=2 spread=8 half=1 mps=$tests/gpu/with-mps.sh sweep=8,13,16; fi
  local sizes=${NVLINK_SIZES:-1GiB,4GiB,16GiB}
  case $2 in
    doctor) step "$name" 60 $nvlink_cli doctor; cat "$OUT/$name.log" ;;
    # Cases of at most as many ranks as GPUs have one on each; those of eight are spread over the GPUs.
    selftest) nvlink_step "$name" 400 $nvlink_cli selftest --backend cuda --ranks $((gpus > 2 ? gpus : 2)) ;;
    selftest-spread) nvlink_step "$name" 400 $nvlink_cli selftest --backend cuda --ranks 8 ;;
    selftest-processes) nvlink_step "$name" 400 $mps $nvlink_cli run -n "$one" nccl-ext selftest --backend cuda ;;
    bench-threads) nvlink_step "$name" 200 $nvlink_cli bench m2n --backend cuda --ranks "$one" --bytes $sizes --save "$OUT/$name.json" ;;
    bench-spread) nvlink_step "$name" 200 $nvlink_cli bench m2n --backend cuda --ranks "$spread" --bytes $sizes --save "$OUT/$name.json" ;;
    bench-sweep) nvlink_step "$name" 200 $nvlink_cli bench m2n --backend cuda --ranks "$spread" --sweep "${NVLINK_SWEEP:-$sweep}" --save "$OUT/$name.json" ;;
    bench-processes) nvlink_step "$name" 200 $mps $nvlink_cli run -n "$one" nccl-ext bench m2n --backend cuda --bytes $sizes --save "$OUT/$name.json" ;;
    # 65.5 GB of bf16 go from one half of the GPUs to the other, or within the only one.
    refit)
      nvlink_step "$name" 300 $nvlink_cli refit --backend cuda --model Qwen3-32B --from tp="$half" --to tp="$half" \
        --from-gpus "$(seq -s, 0 $((half - 1)))" --to-gpus "$(seq -s, $((gpus - half)) $((gpus - 1)))" --verify --repeat 3 --report "$OUT/$name.html"
      ;;
    *) echo "no step $2 of nvlink"; status=2 ;;
  esac
  unset CUDA_VISIBLE_DEVICES
}

nvlink_all() {
  local gpus one counts=$NVLINK_COUNTS
  step nvlink-topology 30 bash -c 'nvidia-smi topo -m; nvidia-smi nvlink -s -i 0'
  cat "$OUT/nvlink-topology.log"
  if [ -z "$counts" ]; then
    for gpus in 2 4 8; do [ $gpus -le "$nvlink_here" ] && counts="$counts $gpus"; done
  fi
  for gpus in ${counts:-1}; do
    for one in ${NVLINK_STEPS:-doctor bench-threads bench-spread bench-sweep bench-processes selftest selftest-spread selftest-processes refit}; do
      nvlink_one "$gpus" "$one"
    done
  done
}
