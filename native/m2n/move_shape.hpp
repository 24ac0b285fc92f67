// SPDX-License-Identifier: Apache-2.0
// Moves in the shape that bundles are made of: nothing empty, nothing that one run could do, no more runs than 32-bit indices reach.
#pragma once

#include <cstdint>
#include <vector>

#include "m2n/bundle_moves.hpp"

namespace nccl_ext {

// Bytes of a unit of `inner` on either side.
std::uint64_t sourceBytes(const Move& move);
std::uint64_t destinationBytes(const Move& move);

// Runs of a move.
std::uint64_t runsOf(const Move& move);

// The same bytes from the same places to the same places, by moves of at most `maxRuns` runs whose used loops are the last ones.
std::vector<Move> shapeMoves(const std::vector<Move>& moves, std::uint64_t maxRuns);

}  // namespace nccl_ext
