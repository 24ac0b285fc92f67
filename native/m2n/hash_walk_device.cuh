// SPDX-License-Identifier: Apache-2.0
// Gives the tiles of a hash to warps as TileWalk does those of a stage, and finds the move of a tile among very many.
#pragma once

#include "m2n/shared/hash.hpp"
#include "runtime/shared/sync.hpp"

namespace nccl_ext {

// A tile by its move and its number there.
struct HashTile {
  std::uint32_t move;
  std::uint32_t tile;
};

// Of one warp. All lanes hold the same, except where it says otherwise; all calls by all lanes, converged.
class HashWalk {
 public:
  __device__ explicit HashWalk(const HashArgs& args) : args_(args) {
    // Neighbouring tiles go to different SMs.
    tile_ = threadIdx.x / 32 * gridDim.x + blockIdx.x;
    handedOut_ = blockDim.x / 32 * gridDim.x;
    if (more()) ask();
  }

  __device__ bool more() const { return tile_ < args_.tiles; }

  // The next tile, of which there is one.
  __device__ HashTile take() {
    if (tile_ >= nextMove_) findMove();
    const HashTile taken{move_, tile_ - firstTile_};
    tile_ = handedOut_ < args_.tiles ? handedOut_ + __shfl_sync(kAll, answer_, 0) : args_.tiles;
    if (more()) ask();
    return taken;
  }

 private:
  static constexpr unsigned kAll = 0xffff'ffff;

  // The answer takes as long as memory; it is needed when the tile at hand is done.
  __device__ void ask() {
    if (handedOut_ < args_.tiles && threadIdx.x % 32 == 0) answer_ = nccl_ext::take<kDevice>(args_.taken->tiles, 1u);
  }

  // Of 32 moves from `first` on, `step` apart, those that begin at tile_ or before: at least one.
  __device__ std::uint32_t begun(std::uint32_t first, std::uint32_t step, std::uint32_t& begins) {
    const std::uint64_t at = first + std::uint64_t{threadIdx.x % 32} * step;
    begins = at < args_.moveCount ? args_.firstTiles[at] : args_.tiles;
    return static_cast<std::uint32_t>(__popc(__ballot_sync(kAll, begins <= tile_)));
  }

  // Finds the move of tile_, which is move_ or one behind it: near at hand as a rule, else by steps a 32nd as long each time.
  __device__ void findMove() {
    std::uint32_t begins, count = begun(move_, 1, begins);
    if (count == 32) {
      std::uint32_t step = (args_.moveCount - move_ + 31) / 32;
      for (;; step = (step + 31) / 32) {
        count = begun(move_, step, begins);
        move_ += (count - 1) * step;
        if (step == 1) break;
      }
    } else {
      move_ += count - 1;
    }
    firstTile_ = __shfl_sync(kAll, begins, static_cast<int>(count) - 1);
    nextMove_ = count < 32 ? __shfl_sync(kAll, begins, static_cast<int>(count)) : 0;
  }

  const HashArgs& args_;
  std::uint32_t tile_;           // the next one
  std::uint32_t handedOut_;      // tiles that warps begin with
  std::uint32_t answer_ = 0;     // of lane 0: the tile after the one at hand, less handedOut_
  std::uint32_t move_ = 0;       // of the last tile taken
  std::uint32_t firstTile_ = 0;  // of that move
  std::uint32_t nextMove_ = 0;   // first tile behind it; 0: not known
};

}  // namespace nccl_ext
