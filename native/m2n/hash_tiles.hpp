// SPDX-License-Identifier: Apache-2.0
// Cuts what a rank hashes into tiles of nearly equal size.
#pragma once

#include <vector>

#include "m2n/shared/hash.hpp"

namespace nccl_ext {

// Moves of a sorted table that hash together, in the table's order; groups are numbered through all of the table's.
struct HashList {
  std::vector<HashMove> moves;
  std::vector<std::uint32_t> firstTiles;  // by move
  std::uint32_t tiles = 0;
};

// `sms` share the tiles.
void cutHashTiles(HashList& list, int sms);

}  // namespace nccl_ext
