// SPDX-License-Identifier: Apache-2.0
// Walks the tiles of a part warp by warp: warp w of the n warps of the kernel takes tiles w, w + n, ..., so that all of them
// together sweep the source once, like a copy does.
#pragma once

#include "m2n/shared/program.hpp"

namespace nccl_ext {

struct TileCursor {
  std::uint32_t tile;       // of the part
  std::uint32_t step;       // warps that copy the part
  std::uint32_t bundle;     // that holds `tile`, while there is one
  std::uint32_t firstTile;  // of that bundle
  std::uint32_t nextTile;   // first tile behind that bundle
};

constexpr unsigned kAllLanes = 0xffff'ffff;

// Finds the bundle of cursor.tile, which lies in cursor.bundle or behind it. All lanes of a warp, converged.
__device__ inline void findBundle(const PartWork& part, TileCursor& cursor) {
  const std::uint32_t lane = threadIdx.x % 32;
  for (;;) {
    const std::uint32_t at = cursor.bundle + lane;
    const std::uint32_t first = at < part.bundleCount ? part.firstTiles[at] : part.tiles;
    const int before = __popc(__ballot_sync(kAllLanes, first <= cursor.tile));
    if (before == 32) {
      cursor.bundle += 31;
      continue;
    }
    cursor.bundle += static_cast<std::uint32_t>(before) - 1;
    cursor.firstTile = __shfl_sync(kAllLanes, first, before - 1);
    cursor.nextTile = __shfl_sync(kAllLanes, first, before);
    return;
  }
}

// `warps` of each CTA copy the part; this is one of them.
__device__ inline TileCursor firstTile(const PartWork& part, std::uint32_t warps) {
  // Neighbouring tiles go to different SMs.
  TileCursor cursor{threadIdx.x / 32 * gridDim.x + blockIdx.x, warps * gridDim.x, 0, 0, 0};
  if (cursor.tile < part.tiles) findBundle(part, cursor);
  return cursor;
}

__device__ inline void advance(const PartWork& part, TileCursor& cursor) {
  cursor.tile += cursor.step;
  if (cursor.tile < part.tiles && cursor.tile >= cursor.nextTile) findBundle(part, cursor);
}

}  // namespace nccl_ext
