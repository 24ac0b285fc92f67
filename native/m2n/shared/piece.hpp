// SPDX-License-Identifier: Apache-2.0
// Where the pieces of a tile lie: the one reading of a Bundle, by the kernel's copy paths and by tests.
#pragma once

#include "m2n/shared/program.hpp"

namespace nccl_ext {

// What a tile copies: units [offset, offset + units) of each piece from firstPiece on.
struct TileSpan {
  std::uint32_t firstPiece;
  std::uint32_t pieces;
  std::uint32_t units;
  std::uint64_t offset;
};

// `tile` counts from the bundle's first one.
NCCL_EXT_HD inline TileSpan spanOf(const Bundle& bundle, std::uint32_t tile) {
  const std::uint32_t group = bundle.segments.quotient(tile);
  const std::uint32_t segment = tile - group * bundle.segments.divisor;
  const std::uint32_t first = group * bundle.perTile, left = bundle.pieces - first;
  const std::uint64_t offset = std::uint64_t{segment} * bundle.segmentUnits, rest = bundle.inner - offset;
  return {first, left < bundle.perTile ? left : bundle.perTile,
          rest < bundle.segmentUnits ? static_cast<std::uint32_t>(rest) : bundle.segmentUnits, offset};
}

// A piece by its column and the indices of its row.
struct Place {
  std::uint32_t column;
  std::uint32_t index[3];
};

NCCL_EXT_HD inline Place placeOf(const Bundle& bundle, std::uint32_t piece) {
  const std::uint32_t row = bundle.columns.quotient(piece);
  const std::uint32_t outer = bundle.loop2.quotient(row), outermost = bundle.loop1.quotient(outer);
  return {piece - row * bundle.columns.divisor,
          {outermost, outer - outermost * bundle.loop1.divisor, row - outer * bundle.loop2.divisor}};
}

// Bytes from the first piece of a column to the one at `place`.
NCCL_EXT_HD inline std::uint64_t distanceTo(const Place& place, const std::int64_t (&strides)[3]) {
  return static_cast<std::uint64_t>(strides[0]) * place.index[0] +
         static_cast<std::uint64_t>(strides[1]) * place.index[1] +
         static_cast<std::uint64_t>(strides[2]) * place.index[2];
}

}  // namespace nccl_ext
