// SPDX-License-Identifier: Apache-2.0
#include "m2n/move_shape.hpp"

#include <algorithm>

#include "generated/contract.hpp"

namespace nccl_ext {
namespace {

int fromOf(const Move& move) {
  return (move.transform - 1) / 32;
}
int toOf(const Move& move) {
  return (move.transform - 1) % 32;
}

struct Loop {
  std::uint64_t count;
  std::int64_t source, destination;
};

// Whether `outer` goes on where `inner` ends, on both sides.
bool continues(const Loop& outer, const Loop& inner) {
  const auto count = static_cast<std::int64_t>(inner.count);
  return outer.source == inner.source * count && outer.destination == inner.destination * count;
}

// Merges loops, and the innermost loop with the run.
Move simplified(Move move) {
  if (move.transform != 0 && fromOf(move) == toOf(move)) {
    // The same dtype on both sides is no conversion.
    move.inner *= kDTypeBytes[fromOf(move)];
    move.transform = 0;
  }
  Loop run{move.inner, static_cast<std::int64_t>(sourceBytes(move)), static_cast<std::int64_t>(destinationBytes(move))};
  std::vector<Loop> loops;  // innermost first
  for (std::size_t loop = move.counts.size(); loop-- > 0;) {
    if (move.counts[loop] == 1) continue;
    const Loop next{move.counts[loop], move.sourceStrides[loop], move.destinationStrides[loop]};
    Loop& before = loops.empty() ? run : loops.back();
    if (continues(next, before))
      before.count *= next.count;
    else
      loops.push_back(next);
  }
  move.inner = run.count;
  move.counts = {1, 1, 1};
  move.sourceStrides = move.destinationStrides = {};
  for (std::size_t i = 0; i < loops.size(); i++) {
    const std::size_t at = move.counts.size() - 1 - i;
    move.counts[at] = loops[i].count;
    move.sourceStrides[at] = loops[i].source;
    move.destinationStrides[at] = loops[i].destination;
  }
  return move;
}

void split(const Move& move, std::uint64_t maxRuns, std::vector<Move>& into) {
  if (runsOf(move) <= maxRuns) return into.push_back(move);
  const auto longest = std::max_element(move.counts.begin(), move.counts.end());
  const auto loop = static_cast<std::size_t>(longest - move.counts.begin());
  Move first = move, second = move;
  first.counts[loop] = move.counts[loop] / 2;
  second.counts[loop] -= first.counts[loop];
  second.source += first.counts[loop] * static_cast<std::uint64_t>(move.sourceStrides[loop]);
  second.destination += first.counts[loop] * static_cast<std::uint64_t>(move.destinationStrides[loop]);
  split(first, maxRuns, into);
  split(second, maxRuns, into);
}

}  // namespace

std::uint64_t sourceBytes(const Move& move) {
  return move.transform == 0 ? 1 : kDTypeBytes[fromOf(move)];
}

std::uint64_t destinationBytes(const Move& move) {
  return move.transform == 0 ? 1 : kDTypeBytes[toOf(move)];
}

std::uint64_t runsOf(const Move& move) {
  return move.counts[0] * move.counts[1] * move.counts[2];
}

std::vector<Move> shapeMoves(const std::vector<Move>& moves, std::uint64_t maxRuns) {
  std::vector<Move> shaped;
  for (const Move& move : moves) {
    if (move.inner > 0 && runsOf(move) > 0) split(simplified(move), maxRuns, shaped);
  }
  return shaped;
}

}  // namespace nccl_ext
