// SPDX-License-Identifier: Apache-2.0
#include "m2n/engine_copies.hpp"

#include <algorithm>

#include "m2n/move_shape.hpp"

namespace nccl_ext {
namespace {

constexpr std::uint64_t kAnyRuns = std::uint64_t{1} << 62;
// cudaDeviceProp.memPitch of every GPU since.
constexpr std::uint64_t kMostPitch = (std::uint64_t{1} << 31) - 1;

using Loop = std::size_t;  // of a move: 0 is the outermost

std::uint64_t strideOf(const std::array<std::int64_t, 3>& strides, Loop loop) {
  return static_cast<std::uint64_t>(strides[loop]);
}

bool isPitch(std::uint64_t stride, std::uint64_t width) {
  return stride >= width && stride <= kMostPitch;
}

// What the loops of a shaped move from `first` on can be of one copy. Its used loops are the last ones.
struct Reach {
  bool rows = false, planes = false;
};

Reach reachOf(const Move& move) {
  Reach reach;
  const std::uint64_t source = strideOf(move.sourceStrides, 2), destination = strideOf(move.destinationStrides, 2);
  reach.rows = move.counts[2] == 1 || (isPitch(source, move.inner) && isPitch(destination, move.inner));
  if (!reach.rows || move.counts[2] == 1) return reach;
  const auto isHeight = [&move](std::uint64_t outer, std::uint64_t pitch) {
    return outer % pitch == 0 && outer / pitch >= move.counts[2];
  };
  reach.planes =
      isHeight(strideOf(move.sourceStrides, 1), source) && isHeight(strideOf(move.destinationStrides, 1), destination);
  return reach;
}

// The first copy of a move; the others repeat it over the loops that it does not reach.
EngineCopy firstCopy(const Move& move, const Reach& reach) {
  EngineCopy copy;
  copy.source = move.source;
  copy.destination = move.destination;
  copy.width = move.inner;
  if (!reach.rows || move.counts[2] == 1) return copy;
  copy.rows = move.counts[2];
  copy.sourcePitch = strideOf(move.sourceStrides, 2);
  copy.destinationPitch = strideOf(move.destinationStrides, 2);
  copy.sourceHeight = copy.destinationHeight = copy.rows;
  if (!reach.planes) return copy;
  copy.planes = move.counts[1];
  copy.sourceHeight = strideOf(move.sourceStrides, 1) / copy.sourcePitch;
  copy.destinationHeight = strideOf(move.destinationStrides, 1) / copy.destinationPitch;
  return copy;
}

void repeat(const EngineCopy& copy, const Move& move, Loop loops, std::vector<EngineCopy>& into) {
  if (loops == 0) return into.push_back(copy);
  const Loop loop = loops - 1;
  for (std::uint64_t i = 0; i < move.counts[loop]; i++) {
    EngineCopy next = copy;
    next.source += i * strideOf(move.sourceStrides, loop);
    next.destination += i * strideOf(move.destinationStrides, loop);
    repeat(next, move, loop, into);
  }
}

std::string tooMany() {
  return "takes more than " + std::to_string(kMostEngineCopies) + " copies together with what comes before";
}

// Appends the copies of a shaped move; the reason when it has none.
std::string append(const Move& move, EngineCopies& out) {
  if (move.transform != 0) return "is converted to another dtype on its way";
  const std::uint64_t runs = runsOf(move);
  if (runs > 1 && move.inner < kLeastEngineRun) {
    return "has runs of " + std::to_string(move.inner) + " bytes, shorter than the " + std::to_string(kLeastEngineRun) +
           " that copy engines serve well";
  }
  const Reach reach = reachOf(move);
  const Loop left = reach.planes ? 1 : reach.rows ? 2 : 3;
  std::uint64_t count = 1;
  for (Loop loop = 0; loop < left; loop++) count *= move.counts[loop];
  if (count > kMostEngineCopies - out.copies.size()) return tooMany();
  repeat(firstCopy(move, reach), move, left, out.copies);
  out.bytes += runs * move.inner;
  return "";
}

}  // namespace

EngineCopies engineCopiesOf(const std::vector<Move>& moves, std::optional<EngineRefusal>& refusal) {
  EngineCopies out;
  for (std::size_t i = 0; i < moves.size(); i++) {
    for (const Move& shaped : shapeMoves({moves[i]}, kAnyRuns)) {
      const std::string reason = append(shaped, out);
      if (reason.empty()) continue;
      refusal = EngineRefusal{i, reason};
      return {};
    }
  }
  return out;
}

bool areLargeRuns(const EngineCopies& copies) {
  const auto isOneRun = [](const EngineCopy& copy) { return copy.rows == 1; };
  return copies.bytes >= kLargeEngineBytes && copies.bytes / copies.copies.size() >= kLargeEngineCopy &&
         std::all_of(copies.copies.begin(), copies.copies.end(), isOneRun);
}

std::vector<Move> fromOwnPeerOn(std::vector<Move> moves, int rank) {
  std::vector<std::size_t> firsts;  // of the moves to each peer
  for (std::size_t i = 0; i < moves.size(); i++) {
    if (i == 0 || moves[i].peer != moves[i - 1].peer) firsts.push_back(i);
  }
  if (firsts.empty()) return moves;
  const std::size_t first = firsts[static_cast<std::size_t>(rank) % firsts.size()];
  std::rotate(moves.begin(), moves.begin() + static_cast<std::ptrdiff_t>(first), moves.end());
  return moves;
}

}  // namespace nccl_ext
