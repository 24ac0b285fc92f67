// SPDX-License-Identifier: Apache-2.0
// Turns the moves of one rank and stage into what its kernel reads: bundles and tiles. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "m2n/shared/program.hpp"

namespace nccl_ext {

// A row of a MoveTable (contract/m2n.ts) with addresses instead of tensors and offsets.
struct Move {
  std::int32_t peer = 0;
  std::uint16_t transform = 0;
  std::uint64_t source = 0;
  std::uint64_t destination = 0;  // as this rank sees it
  std::uint64_t inner = 0;        // bytes, or elements when it converts
  std::array<std::uint64_t, 3> counts{1, 1, 1};
  std::array<std::int64_t, 3> sourceStrides{};
  std::array<std::int64_t, 3> destinationStrides{};
  std::int32_t tensor = 0;  // at the receiver; for errors alone
};

struct StageLimits {
  std::int32_t ctas = 1;  // at most; one per SM
  bool bulk = false;      // whether the bulk copy engine may be used (preloadTransfer says)
};

struct StagePart {
  std::vector<Bundle> bundles;
  std::vector<std::uint32_t> firstTiles;  // by bundle
  std::uint32_t tiles = 0;                // of all bundles
  std::uint32_t grab = 1;                 // tiles that a warp takes at a time
};

struct StageProgram {
  StagePart bulk, vector;
  std::vector<Member> members;
  std::vector<std::int32_t> peers;  // that moves go to, ascending; may hold the rank itself
  std::int32_t ctas = 1;
  bool lanes = false;              // as in TransferWork
  std::uint64_t writtenBytes = 0;  // of one execution
};

// The moves are checked: transforms are 0 or convert between dtypes of kDTypeBytes that isCastable (core/src/dtype) allows, and
// every byte lies in memory, so that nothing overflows. Moves without a byte are dropped.
StageProgram bundleMoves(const std::vector<Move>& moves, const StageLimits& limits);

}  // namespace nccl_ext
