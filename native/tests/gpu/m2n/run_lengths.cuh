// SPDX-License-Identifier: Apache-2.0
// Runs of every length between places of every alignment, in tensors that end where the memory does: a word too many is for
// compute-sanitizer or AddressSanitizer to find.
#pragma once

#include "executions.cuh"

namespace nccl_ext::test {

// Which runs rank 0 sends to rank 1: of `first`, `first + step`, ... to 300 bytes, each in `rows` rows.
struct RunLengths {
  std::uint64_t shift;  // bytes before each source
  std::uint64_t first, step, rows;
};

inline bool executeRunLengths(const RunLengths& runs, const StageLimits& limits) {
  constexpr std::uint64_t kLongest = 300, kColumns = 2;
  std::vector<Move> moves;
  std::uint64_t source = 0, destination = 0;
  for (std::uint64_t run = runs.first; run <= kLongest; run += runs.step) {
    const std::uint64_t gap = run % 3 == 0 ? runs.shift : 0;
    source += runs.shift;
    for (std::uint64_t column = 0; column < kColumns; column++) {
      Move move;
      move.peer = 1;
      move.source = source + column * run;
      move.destination = destination += run % 16;
      move.inner = run;
      move.counts = {1, 1, runs.rows};
      move.sourceStrides[2] = static_cast<std::int64_t>(kColumns * run + gap);
      move.destinationStrides[2] = static_cast<std::int64_t>(run + run % 5);
      destination += runs.rows * (run + run % 5);
      moves.push_back(move);
    }
    source += runs.rows * (kColumns * run + gap) - gap;
  }
  Memories memories(2, destination);
  memories.sources[0].allocate(source);
  for (Move& move : moves) {
    move.source = memories.sources[0].address(move.source);
    move.destination = memories.destinations[1].address(move.destination);
  }
  std::vector<RankMoves> ranks(2);
  ranks[0].stages[0] = moves;
  Generator g{std::mt19937_64(runs.shift), {}, {}};
  return executeAndCompare(memories, ranks, limits, g);
}

}  // namespace nccl_ext::test
