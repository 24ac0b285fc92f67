// SPDX-License-Identifier: Apache-2.0
// Whether two sets of strided moves touch a common byte, run by run.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "generated/contract.hpp"

namespace nccl_ext {

// One side of a move.
struct TouchedMove {
  std::int64_t start = 0;  // address of its first byte
  std::int64_t runBytes = 0;
  std::array<std::int64_t, kMoveLoops> counts{};
  std::array<std::int64_t, kMoveLoops> strides{};
};

// A pair with more than a few million runs counts as meeting, so that nothing wrong passes.
bool runsMeet(const std::vector<TouchedMove>& a, const std::vector<TouchedMove>& b);

}  // namespace nccl_ext
