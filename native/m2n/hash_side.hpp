// SPDX-License-Identifier: Apache-2.0
// One side of a move that is hashed, brought into the shape that costs least to read: fewer loops, longer runs, the same words.
#pragma once

#include <array>
#include <vector>

#include "m2n/move_table.hpp"
#include "m2n/shared/hash.hpp"

namespace nccl_ext {

struct HashSide {
  std::uint64_t address = 0;   // of the first unit
  std::uint64_t inner = 0;     // units of a run: bytes, elements where the move converts
  std::uint64_t unit = 1;      // bytes of one on this side
  std::uint64_t wordUnit = 1;  // bytes of one at the destination, of which words are made
  std::array<std::uint64_t, kMoveLoops> counts{1, 1, 1};
  std::array<std::int64_t, kMoveLoops> strides{};  // bytes
  std::uint64_t number = 0;                        // of its first word in its group
  std::uint32_t group = 0;
  std::uint16_t transform = 0;  // of this side: 0 where it hashes what lies there
};

// Words of all its runs.
std::uint64_t wordsOf(const HashSide& side);

// Appends the side as one move or, beyond 2^30 runs, several; not cut into tiles yet.
void addSide(HashSide side, std::vector<HashMove>& moves);

}  // namespace nccl_ext
