// SPDX-License-Identifier: Apache-2.0
// Executions of a transfer whose bytes and counts are compared with the oracle's.
#pragma once

#include <algorithm>

#include "random_moves.cuh"

namespace nccl_ext::test {

// Whether every byte of every destination is what the oracle left there; words about the first that is not.
inline bool same(Memories& memories) {
  std::vector<std::uint8_t> seen;
  for (std::size_t rank = 0; rank < memories.destinations.size(); rank++) {
    Memory& memory = memories.destinations[rank];
    seen.resize(memory.host.size());
    CHECK_CUDA(cudaMemcpy(seen.data(), memory.device, seen.size(), cudaMemcpyDeviceToHost));
    if (std::memcmp(seen.data(), memory.host.data(), seen.size()) == 0) continue;
    std::size_t at = 0, wrong = 0;
    for (std::size_t i = seen.size(); i-- > 0;) {
      if (seen[i] != memory.host[i]) at = i, wrong++;
    }
    std::printf("rank %zu: %zu bytes differ, first at %zu: %02x instead of %02x\n", rank, wrong, at, seen[at],
                memory.host[at]);
    return false;
  }
  return true;
}

// Two executions of one prepared transfer, of other bytes each, and what they count.
inline bool executeAndCompare(Memories& memories, const std::vector<RankMoves>& ranks, const StageLimits& limits,
                              Generator& g) {
  World world(ranks, limits);
  for (int execution = 0; execution < 2; execution++) {
    for (Memory& memory : memories.sources) {
      for (std::size_t i = 0; i < memory.host.size(); i += 8) {
        const std::uint64_t value = g.random();
        std::memcpy(&memory.host[i], &value, std::min<std::size_t>(8, memory.host.size() - i));
      }
      memory.push();
    }
    for (Memory& memory : memories.destinations) {
      std::fill(memory.host.begin(), memory.host.end(), static_cast<std::uint8_t>(0xa5 + execution));
      memory.push();
    }
    for (int stage = 0; stage < kTransferStages; stage++) {
      for (const RankMoves& rank : ranks) {
        for (const Move& entry : rank.stages[stage]) move(memories, entry);
      }
    }
    if (!world.run() || !same(memories)) return false;
    for (int rank = 0; rank < world.size(); rank++) {
      std::uint64_t bytes = 0;
      for (const auto& stage : ranks[rank].stages) {
        for (const Move& entry : stage) bytes += entry.inner * destinationBytes(entry) * runsOf(entry);
      }
      const TransferCounts& counts = world.counts(rank);
      if (counts.completed == execution + 1u && counts.written == bytes * (execution + 1u)) continue;
      std::printf("rank %d counts %llu executions and %llu bytes instead of %llu\n", rank,
                  static_cast<unsigned long long>(counts.completed), static_cast<unsigned long long>(counts.written),
                  static_cast<unsigned long long>(bytes * (execution + 1u)));
      return false;
    }
  }
  return true;
}

}  // namespace nccl_ext::test
