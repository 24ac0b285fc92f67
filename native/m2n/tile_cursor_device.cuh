// SPDX-License-Identifier: Apache-2.0
// Walks the tiles of a CTA warp by warp: warp w of n takes tiles w, w + n, ... of the CTA's share, across bundles.
#pragma once

#include "m2n/shared/program.hpp"

namespace nccl_ext {

struct TileCursor {
  std::uint32_t tile;       // of the part
  std::uint32_t end;        // of the CTA's share
  std::uint32_t bundle;     // that holds `tile`, while there is one
  std::uint32_t firstTile;  // of that bundle
  std::uint32_t nextTile;   // first tile behind that bundle

  __device__ bool has() const { return tile < end; }
};

constexpr unsigned kAllLanes = 0xffff'ffff;

// Finds the bundle of cursor.tile, which lies in cursor.bundle or behind it. All lanes of a warp, converged.
__device__ inline void findBundle(const PartWork& part, TileCursor& cursor) {
  const std::uint32_t lane = threadIdx.x % 32;
  for (;;) {
    const std::uint32_t at = cursor.bundle + lane;
    const std::uint32_t first = at < part.bundleCount ? part.firstTiles[at] : 0xffff'ffff;
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

__device__ inline TileCursor firstTile(const PartWork& part, std::uint32_t warp) {
  const TileStart start = part.starts[blockIdx.x];
  TileCursor cursor{start.tile + warp, part.starts[blockIdx.x + 1].tile, start.bundle, 0, 0};
  if (cursor.has()) findBundle(part, cursor);
  return cursor;
}

__device__ inline void advance(const PartWork& part, TileCursor& cursor, std::uint32_t warps) {
  cursor.tile += warps;
  if (cursor.has() && cursor.tile >= cursor.nextTile) findBundle(part, cursor);
}

}  // namespace nccl_ext
