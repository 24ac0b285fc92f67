// SPDX-License-Identifier: Apache-2.0
// Which stages of a rank's transfer copy engines do instead of kernels: all when asked for, else those of few large runs.
#pragma once

#include <array>
#include <memory>

#include "m2n/engine_copies.hpp"
#include "m2n/shared/control.hpp"
#include "runtime/error.hpp"
#include "runtime/graph_condition.hpp"

namespace nccl_ext {

enum class Engines { kNever, kUnasked, kAlone };

struct EngineLimits {
  Engines choice = Engines::kNever;
  // Not asked for, they get no more bytes in a stage: peers see no progress within one.
  std::uint64_t mostUnasked = 0;
  std::shared_ptr<const GraphCondition> condition;  // of the rank's GPU
};

// The moves of a rank, sorted by peer, by stage.
using StageMoves = std::array<std::vector<Move>, kTransferStages>;
// By stage; none: its kernel does it.
using StageCopies = std::array<std::optional<EngineCopies>, kTransferStages>;

// ERR_UNSUPPORTED: engines alone are asked for and cannot, or are out of reach here.
Outcome<StageCopies> stageCopiesOf(int rank, const StageMoves& moves, const EngineLimits& limits);

}  // namespace nccl_ext
