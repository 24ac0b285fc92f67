// SPDX-License-Identifier: Apache-2.0
#include "m2n/staging_rounds.hpp"

#include <algorithm>
#include <map>

namespace nccl_ext {
namespace {

std::uint64_t ceilDiv(std::uint64_t value, std::uint64_t by) {
  return value / by + (value % by == 0 ? 0 : 1);
}

}  // namespace

void cutRounds(std::vector<PairStream>& pairs, const StagingLimits& limits) {
  std::map<std::int32_t, std::uint64_t> sent, received;
  for (const PairStream& pair : pairs) {
    sent[pair.sender] += pair.bytes;
    received[pair.receiver] += pair.bytes;
  }
  const auto roundsOf = [&](std::uint64_t bytes) {
    return std::clamp<std::uint64_t>(ceilDiv(bytes, limits.bytes), 1, limits.rounds);
  };
  for (PairStream& pair : pairs) {
    const std::uint64_t rounds = std::max(roundsOf(sent[pair.sender]), roundsOf(received[pair.receiver]));
    pair.chunk = ceilDiv(ceilDiv(pair.bytes, rounds), kChunkAlignment) * kChunkAlignment;
  }
}

}  // namespace nccl_ext
