// SPDX-License-Identifier: Apache-2.0
#include "m2n/hash_side.hpp"

#include <algorithm>

namespace nccl_ext {
namespace {

constexpr std::uint64_t kMaxRuns = std::uint64_t{1} << 30;

std::uint64_t runWordsOf(const HashSide& side) {
  return (side.inner * side.wordUnit + 7) / 8;
}

std::uint64_t runsOf(const HashSide& side) {
  return side.counts[0] * side.counts[1] * side.counts[2];
}

// Loops of one turn go, loops that go on where the next inner one ends become one, and a loop becomes part of the run where the words
// are the same: without a gap, and of runs of whole words.
void simplify(HashSide& side) {
  std::array<std::uint64_t, kMoveLoops> counts{1, 1, 1};
  std::array<std::int64_t, kMoveLoops> strides{};
  std::size_t used = 0;  // innermost first
  for (std::size_t loop = kMoveLoops; loop-- > 0;) {
    const std::uint64_t count = side.counts[loop];
    const auto stride = static_cast<std::uint64_t>(side.strides[loop]);
    if (count == 1) continue;
    if (used == 0 && side.inner * side.wordUnit % 8 == 0 && stride == side.inner * side.unit) {
      side.inner *= count;
    } else if (used > 0 && stride == static_cast<std::uint64_t>(strides[used - 1]) * counts[used - 1]) {
      counts[used - 1] *= count;
    } else {
      counts[used] = count;
      strides[used++] = side.strides[loop];
    }
  }
  std::reverse_copy(counts.begin(), counts.end(), side.counts.begin());
  std::reverse_copy(strides.begin(), strides.end(), side.strides.begin());
}

// Of the addresses of runs: what they all have in common with the first one, modulo 16, and what they may be beyond it.
struct Skew {
  std::uint64_t most;  // of an address modulo 16
  std::uint64_t step;  // all addresses are the first one plus multiples of it
};

Skew skewOf(const HashSide& side) {
  std::uint64_t bits = 16;
  for (std::size_t loop = 0; loop < kMoveLoops; loop++) {
    if (side.counts[loop] > 1) bits |= static_cast<std::uint64_t>(side.strides[loop]);
  }
  const std::uint64_t step = bits & (~bits + 1);
  return {16 - step + side.address % step, step};
}

// Whether the elements of each whole word lie where one load reaches them, or loads of 16 bytes.
bool isCastAligned(const HashSide& side, const Skew& skew) {
  const std::uint64_t bytes = std::min<std::uint64_t>(16, 8 / side.wordUnit * side.unit);
  return bytes > 1 && (side.address | skew.step) % bytes == 0;
}

HashMove moveOf(const HashSide& side) {
  HashMove move;
  move.address = move.begin = side.address;
  move.end = side.address + side.inner * side.unit;
  for (std::size_t loop = 0; loop < kMoveLoops; loop++) {
    const std::uint64_t reach = static_cast<std::uint64_t>(side.strides[loop]) * (side.counts[loop] - 1);
    (side.strides[loop] < 0 ? move.begin : move.end) += reach;
    move.strides[loop] = side.strides[loop];
  }
  move.inner = side.inner;
  move.runWords = runWordsOf(side);
  move.number = side.number;
  move.runs = static_cast<std::uint32_t>(runsOf(side));
  move.group = side.group;
  move.loop1 = FastDiv(static_cast<std::uint32_t>(side.counts[1]));
  move.loop2 = FastDiv(static_cast<std::uint32_t>(side.counts[2]));
  move.transform = side.transform;
  const Skew skew = skewOf(side);
  if (side.transform != 0) {
    move.path = HashPath::kCast;
    move.slots = move.runWords;
    move.aligned = isCastAligned(side, skew) ? 1 : 0;
    return move;
  }
  const std::uint64_t anywhere = side.address | skew.step;
  move.path = anywhere % 8 != 0 ? HashPath::kBytes : HashPath::kWords;
  if ((anywhere | side.inner) % 16 == 0) move.path = HashPath::kVectors;
  move.slots = (skew.most + 8 * (move.runWords - 1)) / 16 + 1;
  return move;
}

void split(const HashSide& side, std::vector<HashMove>& moves) {
  if (runsOf(side) <= kMaxRuns) return moves.push_back(moveOf(side));
  // The outermost loop, so that both halves number their words on end.
  std::size_t loop = 0;
  while (side.counts[loop] == 1) loop++;
  HashSide first = side, second = side;
  first.counts[loop] = side.counts[loop] / 2;
  second.counts[loop] -= first.counts[loop];
  second.address += first.counts[loop] * static_cast<std::uint64_t>(side.strides[loop]);
  second.number += wordsOf(first);
  split(first, moves);
  split(second, moves);
}

}  // namespace

std::uint64_t wordsOf(const HashSide& side) {
  return runsOf(side) * runWordsOf(side);
}

void addSide(HashSide side, std::vector<HashMove>& moves) {
  // Equal dtypes convert nothing.
  if (side.transform != 0 && (side.transform - 1) / 32 == (side.transform - 1) % 32) side.transform = 0;
  if (side.transform == 0) {
    side.inner *= side.unit;
    side.unit = side.wordUnit = 1;
  }
  simplify(side);
  split(side, moves);
}

}  // namespace nccl_ext
