// SPDX-License-Identifier: Apache-2.0
// Random moves: tensors at any alignment, cut in columns among ranks, some converted, some to several ranks, some forwarded.
#pragma once

#include <array>
#include <random>

#include "memories.cuh"

namespace nccl_ext::test {

constexpr std::uint64_t kSpace = 4 << 20;  // of each rank's sources and of its destinations

struct Generator {
  std::mt19937_64 random;
  std::vector<std::uint64_t> sourceEnd, destinationEnd;
  std::uint64_t space = kSpace;

  std::uint64_t pick(std::uint64_t below) { return random() % below; }
  // Room at the end of one memory, at any alignment or at 256 bytes; none when it is full.
  bool take(std::vector<std::uint64_t>& ends, int rank, std::uint64_t bytes, bool aligned, std::uint64_t& offset) {
    offset = (ends[rank] + 255) / 256 * 256 + (aligned ? 0 : pick(256));
    if (offset + bytes > space) return false;
    ends[rank] = offset + bytes + pick(64);
    return true;
  }
};

inline std::uint16_t anyCast(Generator& generator) {
  const int from = static_cast<int>(generator.pick(6));
  return castTransform(static_cast<DType>(from), static_cast<DType>((from + 1 + generator.pick(5)) % 6));
}

// One tensor of a rank, cut in columns among random ranks.
inline void addTensor(Generator& g, Memories& memories, std::vector<RankMoves>& ranks, int rank) {
  const bool aligned = g.pick(3) > 0;
  const std::uint16_t transform = g.pick(4) == 0 ? anyCast(g) : std::uint16_t{0};
  Move shape;
  shape.transform = transform;
  const std::uint64_t from = sourceBytes(shape), to = destinationBytes(shape);
  const std::uint64_t unit = aligned ? std::uint64_t{1} << (4 + g.pick(5)) : 1 + g.pick(40);
  const std::uint64_t columns = 1 + g.pick(5), inner = unit * (1 + g.pick(g.pick(4) == 0 ? 300 : 6));
  const std::uint64_t pitch = columns * inner * from + (g.pick(2) == 0 ? 0 : unit * from);
  shape.counts = {1 + g.pick(3), 1 + g.pick(3), 1 + g.pick(g.pick(3) == 0 ? 200 : 12)};
  shape.inner = inner;
  const std::uint64_t runs = runsOf(shape);
  std::uint64_t source = 0, destination = 0;
  if (!g.take(g.sourceEnd, rank, pitch * runs, aligned, source)) return;
  const auto strides = [&](std::uint64_t row) {
    return std::array<std::int64_t, 3>{static_cast<std::int64_t>(row * shape.counts[1] * shape.counts[2]),
                                       static_cast<std::int64_t>(row * shape.counts[2]),
                                       static_cast<std::int64_t>(row)};
  };
  for (std::uint64_t column = 0; column < columns; column++) {
    for (std::uint64_t copies = 1 + g.pick(3) / 2; copies-- > 0;) {
      Move move = shape;
      move.peer = static_cast<int>(g.pick(ranks.size()));
      const std::uint64_t row = inner * to + (g.pick(2) == 0 ? 0 : unit * to);
      if (!g.take(g.destinationEnd, move.peer, row * runs, aligned, destination)) continue;
      move.source = memories.sources[rank].address(source + column * inner * from);
      move.destination = memories.destinations[move.peer].address(destination);
      move.sourceStrides = strides(pitch);
      move.destinationStrides = strides(row);
      ranks[rank].stages[0].push_back(move);
      // What arrived goes on to another rank.
      if (g.pick(4) != 0) continue;
      Move next;
      next.peer = static_cast<int>(g.pick(ranks.size()));
      next.inner = row * (runs - 1) + inner * to;
      std::uint64_t offset = 0;
      if (next.peer == move.peer || !g.take(g.destinationEnd, next.peer, next.inner, aligned, offset)) continue;
      next.source = move.destination;
      next.destination = memories.destinations[next.peer].address(offset);
      ranks[move.peer].stages[1].push_back(next);
    }
  }
}

}  // namespace nccl_ext::test
