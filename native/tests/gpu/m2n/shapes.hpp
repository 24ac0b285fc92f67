// SPDX-License-Identifier: Apache-2.0
// The reshardings that are measured (design of M2N), as moves: source ranks 0 to 3, destination ranks 4 to 7, tensors of bytes.
#pragma once

#include <string>
#include <vector>

#include "m2n/bundle_moves.hpp"

namespace nccl_ext::test {

struct Shape {
  std::string name;
  std::uint64_t bytes;      // of the tensor
  std::uint64_t columns;    // destinations side by side in a row
  std::uint64_t run;        // bytes of a row that go to one destination; 0: rows to rows
  std::uint64_t shift = 0;  // bytes from a multiple of 16 to the source's first one, which are not moved
};

constexpr int kSides = 4;

inline std::uint64_t writtenBytes(const Shape& shape) {
  return shape.run == 0 ? shape.bytes : shape.bytes * kSides / shape.columns;
}

// Moves of source rank `source`, whose shard is at `from`; destination d gets its shard at `to[d]`.
inline std::vector<Move> movesOf(const Shape& shape, int source, std::uint64_t from,
                                 const std::vector<std::uint64_t>& to) {
  std::vector<Move> moves;
  const std::uint64_t shard = shape.bytes / kSides;
  for (int destination = 0; destination < kSides; destination++) {
    Move move;
    move.peer = kSides + destination;
    if (shape.run == 0) {
      if (destination != source) continue;
      move.source = from + shape.shift;
      move.destination = to[static_cast<std::size_t>(destination)];
      move.inner = shard - shape.shift;
    } else {
      const std::uint64_t pitch = shape.run * shape.columns, rows = shard / pitch;
      const std::uint64_t column = static_cast<std::uint64_t>(destination) % shape.columns;
      move.source = from + column * shape.run;
      move.destination =
          to[static_cast<std::size_t>(destination)] + static_cast<std::uint64_t>(source) * rows * shape.run;
      move.inner = shape.run;
      move.counts[2] = rows;
      move.sourceStrides[2] = static_cast<std::int64_t>(pitch);
      move.destinationStrides[2] = static_cast<std::int64_t>(shape.run);
    }
    moves.push_back(move);
  }
  return moves;
}

inline std::vector<Shape> shapes() {
  constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
  return {{"rows to rows", kGiB, 1, 0},
          {"rows to columns", kGiB, 4, 8192},
          {"3-D, 256-byte runs", kGiB, 4, 256},
          {"rows to 2 x 2 replicas", kGiB, 2, 16384},
          {"rows 3 bytes off", kGiB / 4, 1, 0, 3},
          {"1001-byte runs", 1001 * 4 * 4 * std::uint64_t{16'000}, 4, 1001},
          {"100-byte runs", kGiB / 4 / 1600 * 1600, 4, 100},
          {"24-byte runs", kGiB / 4 / 384 * 384, 4, 24},
          {"8-byte runs", kGiB / 4, 4, 8},
          {"1 MiB", kGiB / 1024, 4, 256}};
}

}  // namespace nccl_ext::test
