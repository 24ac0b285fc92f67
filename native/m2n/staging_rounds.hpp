// SPDX-License-Identifier: Apache-2.0
// How much of what ranks send each other goes in one round, so that staging stays small and rounds stay few. Pure, and the
// same on every rank.
#pragma once

#include <cstdint>
#include <vector>

namespace nccl_ext {

struct StagingLimits {
  std::uint64_t bytes = std::uint64_t{256} << 20;  // of one rank and side, while that takes no more rounds than
  std::uint64_t rounds = 64;                       // with what a round launches, half of a stream's launch queue
};

// Multiples of this are where chunks begin, in the stream of a pair and in staging.
inline constexpr std::uint64_t kChunkAlignment = 256;

// The stream of bytes from one rank to another in one stage, and how it is cut.
struct PairStream {
  std::int32_t sender = 0;
  std::int32_t receiver = 0;
  std::uint64_t bytes = 0;
  std::uint64_t chunk = 0;  // bytes of a round; round k moves [k * chunk, (k + 1) * chunk)

  std::uint64_t rounds() const { return chunk == 0 ? 0 : (bytes + chunk - 1) / chunk; }
};

// Fills `chunk`: the pairs of a rank take equally many rounds, so that their chunks together are at most limits.bytes, or
// a limits.rounds-th of the rank's bytes if that is more, and kChunkAlignment a pair.
void cutRounds(std::vector<PairStream>& pairs, const StagingLimits& limits);

}  // namespace nccl_ext
