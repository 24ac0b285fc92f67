// SPDX-License-Identifier: Apache-2.0
#include "m2n/move_table.hpp"

namespace nccl_ext {
namespace {

// Dtypes between which kernels convert.
std::optional<std::int64_t> castBytes(int code) {
  switch (static_cast<DType>(code)) {
    case DType::kF64:
    case DType::kF32:
    case DType::kF16:
    case DType::kBf16:
    case DType::kF8e4m3:
    case DType::kF8e5m2:
      return static_cast<std::int64_t>(kDTypeBytes[code]);
    default:
      return std::nullopt;
  }
}

}  // namespace

std::optional<UnitBytes> unitBytesOf(std::uint16_t transform) {
  if (transform == 0) return UnitBytes();
  const auto source = castBytes((transform - 1) / 32), destination = castBytes((transform - 1) % 32);
  if (!source || !destination) return std::nullopt;
  return UnitBytes{*source, *destination};
}

bool isEmptyMove(const MoveTable& table, std::size_t move) {
  if (table.inner[move] == 0) return true;
  for (std::size_t loop = 0; loop < kMoveLoops; loop++) {
    if (table.counts[move * kMoveLoops + loop] == 0) return true;
  }
  return false;
}

std::int64_t bytesOf(const MoveTable& table, std::size_t move, std::int64_t unit) {
  auto bytes = static_cast<std::uint64_t>(table.inner[move]) * static_cast<std::uint64_t>(unit);
  for (std::size_t loop = 0; loop < kMoveLoops; loop++)
    bytes *= static_cast<std::uint64_t>(table.counts[move * kMoveLoops + loop]);
  return static_cast<std::int64_t>(bytes);
}

std::int64_t extentOf(const MoveTable& table, std::size_t move, const std::vector<std::int64_t>& strides,
                      std::int64_t unit) {
  // Products of numbers below 2^53 need more than 64 bits.
  auto extent = static_cast<__int128>(table.inner[move]) * unit;
  for (std::size_t loop = 0; loop < kMoveLoops; loop++) {
    const std::size_t at = move * kMoveLoops + loop;
    extent += static_cast<__int128>(table.counts[at] - 1) * strides[at];
  }
  return extent < (static_cast<__int128>(1) << 62) ? static_cast<std::int64_t>(extent) : -1;
}

}  // namespace nccl_ext
