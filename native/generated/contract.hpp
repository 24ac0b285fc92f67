// SPDX-License-Identifier: Apache-2.0
// Generated from packages/core/src by scripts/native-generate.mjs; do not edit.
#pragma once

#include <cstddef>
#include <cstdint>

#include "generated/records.hpp"

namespace nccl_ext {

inline constexpr int kContractVersion = 1;
inline constexpr int kMaxQueuedOperations = 256;
inline constexpr int kMoveLoops = 3;

// core/src/dtype/dtype.ts
enum class DType : std::uint8_t {
  kF64 = 0,
  kF32 = 1,
  kF16 = 2,
  kBf16 = 3,
  kF8e4m3 = 4,
  kF8e5m2 = 5,
  kF4e2m1x2 = 6,
  kI64 = 7,
  kU64 = 8,
  kI32 = 9,
  kU32 = 10,
  kI16 = 11,
  kU16 = 12,
  kI8 = 13,
  kU8 = 14,
  kBool = 15,
};
inline constexpr std::size_t kDTypeCount = 16;
// Bytes of one element, by code.
inline constexpr std::size_t kDTypeBytes[kDTypeCount] = {8, 4, 2, 2, 1, 1, 1, 8, 8, 4, 4, 2, 2, 1, 1, 1};

// core/src/contract/m2n.ts: a move copies bytes when its transform is 0, else it converts.
constexpr std::uint16_t castTransform(DType from, DType to) {
  return static_cast<std::uint16_t>(1 + static_cast<int>(from) * 32 + static_cast<int>(to));
}

static_assert(sizeof(kDTypeBytes) / sizeof(kDTypeBytes[0]) == kDTypeCount);
static_assert(kDTypeCount <= 32, "castTransform packs a dtype code into five bits");
static_assert(castTransform(DType::kF64, DType::kF64) == 1);
static_assert(castTransform(DType::kF32, DType::kBf16) == 36);
static_assert(castTransform(DType::kBool, DType::kBool) == 496);

}  // namespace nccl_ext
