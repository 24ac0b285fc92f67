// SPDX-License-Identifier: Apache-2.0
#include "m2n/cut_moves.hpp"

#include <algorithm>

#include "m2n/move_shape.hpp"

namespace nccl_ext {
namespace {

constexpr std::size_t kRun = 3;  // the level below the loops

class Cutting {
 public:
  Cutting(const Move& move, std::vector<Move>& into) : move_(move), into_(into) {
    units_[kRun] = 1;
    units_[2] = move.inner;
    units_[1] = units_[2] * move.counts[2];
    units_[0] = units_[1] * move.counts[1];
  }

  // Units [first, end) of what lies below level `level` at `at`, whose outer loops are fixed.
  void cut(std::size_t level, Move at, std::uint64_t first, std::uint64_t end) {
    const std::uint64_t each = units_[level];
    if (level < kRun && first % each != 0) {
      const std::uint64_t begun = first / each, stop = std::min(end, (begun + 1) * each);
      cut(level + 1, moved(at, level, begun), first - begun * each, stop - begun * each);
      first = stop;
    }
    const std::uint64_t from = first / each, to = end / each;
    if (to > from) add(level, moved(at, level, from), to - from);
    if (level < kRun && end > std::max(first, to * each)) cut(level + 1, moved(at, level, to), 0, end - to * each);
  }

 private:
  Move moved(Move at, std::size_t level, std::uint64_t by) const {
    if (level == kRun) {
      at.source += by * sourceBytes(move_);
      at.destination += by * destinationBytes(move_);
    } else {
      at.source += by * static_cast<std::uint64_t>(move_.sourceStrides[level]);
      at.destination += by * static_cast<std::uint64_t>(move_.destinationStrides[level]);
    }
    return at;
  }

  // `count` steps of a level and everything below it.
  void add(std::size_t level, Move at, std::uint64_t count) {
    for (std::size_t outer = 0; outer < kRun && outer < level; outer++) at.counts[outer] = 1;
    (level == kRun ? at.inner : at.counts[level]) = count;
    into_.push_back(at);
  }

  const Move& move_;
  std::vector<Move>& into_;
  std::uint64_t units_[kRun + 1];  // of one step, by level
};

}  // namespace

std::array<std::int64_t, 3> denseStrides(const Move& move, std::uint64_t unit) {
  std::array<std::int64_t, 3> strides{};
  std::uint64_t bytes = move.inner * unit;
  for (std::size_t loop = strides.size(); loop-- > 0;) {
    strides[loop] = static_cast<std::int64_t>(bytes);
    bytes *= move.counts[loop];
  }
  return strides;
}

void cutMove(const Move& move, std::uint64_t first, std::uint64_t end, std::vector<Move>& into) {
  if (first < end) Cutting(move, into).cut(0, move, first, end);
}

}  // namespace nccl_ext
