// SPDX-License-Identifier: Apache-2.0
// A part of a strided move as moves, for streams of bytes that are cut anywhere. Pure.
#pragma once

#include <vector>

#include "m2n/bundle_moves.hpp"

namespace nccl_ext {

// Strides, by loop, of runs that follow each other without a gap, `unit` bytes a unit.
std::array<std::int64_t, 3> denseStrides(const Move& move, std::uint64_t unit);

// Adds moves that do units [first, end) of `move`, counted in the order of its loops: the rest of a run, whole runs, the
// beginning of a run, at most seven in all.
void cutMove(const Move& move, std::uint64_t first, std::uint64_t end, std::vector<Move>& into);

}  // namespace nccl_ext
