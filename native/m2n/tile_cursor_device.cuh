// SPDX-License-Identifier: Apache-2.0
// Gives the tiles of a part to warps: the first ones by their numbers, the others to whoever is free, because SMs do not
// reach memory equally fast. All warps together sweep the source once, like a copy does.
#pragma once

#include "m2n/shared/program.hpp"
#include "runtime/shared/sync.hpp"

namespace nccl_ext {

constexpr unsigned kAllLanes = 0xffff'ffff;

// A tile by its bundle and its number there.
struct TileRef {
  std::uint32_t bundle;
  std::uint32_t tile;
};

// Of one warp. All lanes hold the same, except where it says otherwise; all calls by all lanes, converged.
class TileWalk {
 public:
  // All warps of all CTAs walk the part; this is one of them. `taken` counts the tiles that were handed out behind the first ones.
  __device__ TileWalk(const PartWork& part, std::uint32_t& taken) : part_(part), taken_(taken) {
    // Neighbouring tiles go to different SMs.
    tile_ = (threadIdx.x / 32 * gridDim.x + blockIdx.x) * part.grab;
    end_ = tile_ + part.grab;
    handedOut_ = blockDim.x / 32 * gridDim.x * part.grab;
    if (more()) ask();
  }

  __device__ bool more() const { return tile_ < part_.tiles; }

  // The next tile, of which there is one.
  __device__ TileRef take() {
    if (tile_ >= nextBundle_) findBundle();
    const TileRef ref{bundle_, tile_ - firstTile_};
    if (++tile_ == end_) {
      tile_ = handedOut_ < part_.tiles ? handedOut_ + __shfl_sync(kAllLanes, answer_, 0) : part_.tiles;
      end_ = tile_ + part_.grab;
      if (more()) ask();
    }
    return ref;
  }

 private:
  // The answer takes as long as memory; it is needed when the tiles at hand are gone.
  __device__ void ask() {
    if (handedOut_ < part_.tiles && threadIdx.x % 32 == 0) answer_ = take_();
  }
  __device__ std::uint32_t take_() { return nccl_ext::take<kDevice>(taken_, part_.grab); }

  // Finds the bundle of tile_, which lies in bundle_ or behind it.
  __device__ void findBundle() {
    const std::uint32_t lane = threadIdx.x % 32;
    for (;;) {
      const std::uint32_t at = bundle_ + lane;
      const std::uint32_t first = at < part_.bundleCount ? part_.firstTiles[at] : part_.tiles;
      const int before = __popc(__ballot_sync(kAllLanes, first <= tile_));
      if (before == 32) {
        bundle_ += 31;
        continue;
      }
      bundle_ += static_cast<std::uint32_t>(before) - 1;
      firstTile_ = __shfl_sync(kAllLanes, first, before - 1);
      nextBundle_ = __shfl_sync(kAllLanes, first, before);
      return;
    }
  }

  const PartWork& part_;
  std::uint32_t& taken_;
  std::uint32_t tile_;            // the next one
  std::uint32_t end_;             // of the tiles at hand
  std::uint32_t handedOut_;       // tiles that warps begin with
  std::uint32_t answer_ = 0;      // of lane 0: the tiles after those at hand, less handedOut_
  std::uint32_t bundle_ = 0;      // of the last tile taken
  std::uint32_t firstTile_ = 0;   // of that bundle
  std::uint32_t nextBundle_ = 0;  // first tile behind it; 0 before the first search
};

}  // namespace nccl_ext
