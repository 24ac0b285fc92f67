// SPDX-License-Identifier: Apache-2.0
// Cuts bundles into tiles, small enough that every warp gets some and large enough that a tile's fixed cost does not show.
#pragma once

#include "m2n/bundle_moves.hpp"

namespace nccl_ext {

// Bytes that a bundle writes, all copies.
std::uint64_t writtenBytesOf(const Bundle& bundle);

// Fills what is about tiles in the bundles of both parts, and `ctas`: at most `maxCtas`, fewer for few bytes.
void cutTiles(StageProgram& program, std::int32_t maxCtas);

}  // namespace nccl_ext
