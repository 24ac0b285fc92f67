// SPDX-License-Identifier: Apache-2.0
// Asks the host's memory whether an operation may run, by a warp: its lanes read both words in one access. Answers to different
// SMs come one after the other, about a microsecond each, so few should ask.
#pragma once

#include "runtime/shared/guarded.hpp"

namespace nccl_ext {

// As skipReason. All lanes of a warp, converged; the same answer for all.
__device__ inline ErrorCode skipReasonOfWarp(const Guard& guard) {
  RankWords& words = *guard.words;
  const std::int32_t mine = peek<kSystem>(threadIdx.x % 2 == 0 ? words.stop : words.drained);
  const std::int32_t stop = __shfl_sync(0xffff'ffff, mine, 0), drained = __shfl_sync(0xffff'ffff, mine, 1);
  return reasonOf(static_cast<ErrorCode>(stop), drained != 0);
}

}  // namespace nccl_ext
