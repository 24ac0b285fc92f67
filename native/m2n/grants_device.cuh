// SPDX-License-Identifier: Apache-2.0
// What a warp must know before it stores a tile: that the stage runs and the receivers of the bundle have granted it; and what it tells:
// how many bytes it has written.
#pragma once

#include "m2n/shared/transfer.hpp"
#include "m2n/tile_cursor_device.cuh"
#include "runtime/ptx.cuh"

namespace nccl_ext {

// Bytes between two reports of progress: seldom enough to cost nothing.
constexpr std::uint32_t kProgressBytes = 256 * 1024;

struct WarpGate {
  static constexpr std::uint32_t kNone = 0xffff'ffff;

  const TransferArgs& args;
  std::uint64_t epoch;
  std::uint32_t granted = kNone;  // the bundle that may be stored
  std::uint32_t written = 0;      // bytes not yet reported

  // Whether `number` may be stored. All lanes, converged; the same answer for all. Ends with the warp ordered behind the grants.
  __device__ bool mayStore(std::uint32_t number, const Bundle& bundle) {
    if (number == granted) return true;
    bool ready = granted != kNone || isAdmitted(args, epoch);
    const std::uint32_t members = bundle.columns.divisor * bundle.copies;
    for (std::uint32_t i = threadIdx.x % 32; i < members && ready; i += 32) {
      const int peer = args.work.members[bundle.firstMember + i].peer;
      if (peer == args.rank) continue;
      const WaitEnd end = awaitGrant(args, peer, epoch, [] { return ptx::globaltimer(); });
      ready = end == WaitEnd::kArrived;
      if (!ready)
        failTransfer(args, end, peer, 1, epoch, peek<kSystem>(args.controls[args.rank][grantCell(peer)].value));
    }
    granted = number;
    return __all_sync(kAllLanes, ready);
  }

  // Counts a tile of `pieces` pieces of `bytes` bytes.
  __device__ void wrote(std::uint32_t pieces, std::uint32_t bytes, std::uint32_t copies) {
    written += pieces * bytes * copies;
    if (written >= kProgressBytes) report();
  }

  // By the end of the warp's tiles at the latest.
  __device__ void report() {
    if (threadIdx.x % 32 == 0 && written > 0 && args.counted != 0) {
      std::uint64_t& progress = args.controls[args.rank][progressCell(args.size)].value;
      add<kSystem>(progress, std::uint64_t{written});
      // One thread of the grid tells the host, so that the number never falls.
      if (blockIdx.x == 0 && threadIdx.x == 0) put<kSystem>(args.counts->written, peek<kSystem>(progress));
    }
    written = 0;
  }
};

}  // namespace nccl_ext
