// SPDX-License-Identifier: Apache-2.0
// The shared memory of a warp that copies by the bulk copy engine: a ring of stages.
//
// Tile n of a warp uses stage n % kStages: its load is started kAhead tiles before its store, and a stage is loaded again when its
// last store has read it.
#pragma once

#include "m2n/shared/program.hpp"
#include "runtime/bulk_ptx.cuh"

namespace nccl_ext {

constexpr std::uint32_t kBulkSharedBytes = kWarps * kRingBytes;
static_assert(kBulkSharedBytes <= 224 * 1024, "what a CTA can have on sm_90, less what the kernel declares");

// Of one warp; `kLanes` as in TransferWork.
template <bool kLanes>
struct BulkRing {
  static constexpr std::uint32_t kStages = ringStages(kLanes);
  static constexpr std::uint32_t kAhead = kStages - 1;  // loads under way; the last stage is being stored
  static constexpr std::uint32_t kTileBytes = bulkTileBytes(kLanes);
  static_assert(kTileBytes % 128 == 0 && kAhead < kStages);

  std::uint8_t* stages;   // [kStages][kTileBytes] in shared memory, on a multiple of 128
  std::uint64_t* loaded;  // [kStages] mbarriers

  __device__ std::uint8_t* stage(std::uint32_t n) const { return stages + n % kStages * kTileBytes; }
  __device__ std::uint64_t& barrier(std::uint32_t n) const { return loaded[n % kStages]; }
  // Loads end whatever peers do: no deadline.
  __device__ void awaitLoad(std::uint32_t n) const {
    while (!ptx::mbarrierTryWait(barrier(n), n / kStages % 2)) {
    }
  }
};

}  // namespace nccl_ext
