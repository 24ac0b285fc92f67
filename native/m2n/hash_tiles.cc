// SPDX-License-Identifier: Apache-2.0
#include "m2n/hash_tiles.hpp"

#include <algorithm>

namespace nccl_ext {
namespace {

// Vectors of a tile: enough that finding it does not count, and few where a small list is shared by many warps.
constexpr std::uint64_t kMostTileSlots = 2'048;
constexpr std::uint64_t kLeastTileSlots = 64;
// Tiles that a warp should get, so that all end together.
constexpr std::uint64_t kTilesPerWarp = 4;

std::uint64_t ceilDiv(std::uint64_t value, std::uint64_t by) {
  return (value + by - 1) / by;
}

std::uint64_t tileSlotsOf(const HashList& list, int sms) {
  std::uint64_t slots = 0;
  for (const HashMove& move : list.moves) slots += move.slots * move.runs;
  const std::uint64_t warps = static_cast<std::uint64_t>(std::max(sms, 1)) * kHashWarps;
  const std::uint64_t fair = ceilDiv(slots, warps * kTilesPerWarp * kLeastTileSlots) * kLeastTileSlots;
  return std::clamp(fair, kLeastTileSlots, kMostTileSlots);
}

std::uint32_t cut(HashMove& move, std::uint64_t slots) {
  move.perTile = 1;
  move.segmentSlots = static_cast<std::uint32_t>(std::min(move.slots, slots));
  if (move.slots <= slots)
    move.perTile = static_cast<std::uint32_t>(std::min<std::uint64_t>(move.runs, slots / move.slots));
  move.segments = FastDiv(static_cast<std::uint32_t>(ceilDiv(move.slots, move.segmentSlots)));
  move.perRun = FastDiv(move.segmentSlots);
  return static_cast<std::uint32_t>(ceilDiv(move.runs, move.perTile)) * move.segments.divisor;
}

}  // namespace

void cutHashTiles(HashList& list, int sms) {
  const std::uint64_t slots = tileSlotsOf(list, sms);
  list.tiles = 0;
  list.firstTiles.clear();
  for (HashMove& move : list.moves) {
    list.firstTiles.push_back(list.tiles);
    list.tiles += cut(move, slots);
  }
}

}  // namespace nccl_ext
