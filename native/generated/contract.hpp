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

// core/src/errors/codes.ts
enum class ErrorCode : std::int32_t {
  kNone = 0,
  kInvalidArgument = 1,
  kInvalidState = 2,
  kDisposed = 3,
  kQueueFull = 4,
  kTimeout = 5,
  kAborted = 6,
  kPoisoned = 7,
  kDisagreement = 8,
  kOutOfMemory = 9,
  kUnsupported = 10,
  kViewTooLarge = 11,
  kForeignObject = 12,
  kOutOfBounds = 13,
  kOverlap = 14,
  kRankLost = 15,
  kInternal = 16,
  kBusy = 17,
  kHostCall = 18,
  kBackendConflict = 32,
  kBackendMissing = 33,
  kBackendVersion = 34,
  kBackendLoad = 35,
  kDriverTooOld = 36,
  kDriverMissing = 37,
  kNcclNotFound = 38,
  kNcclVersion = 39,
  kLauncher = 40,
  kSingleProcess = 41,
  kModule = 42,
  kMesh = 64,
  kLayout = 65,
  kTopology = 66,
  kShapeMismatch = 67,
  kCoverage = 68,
  kCast = 69,
  kManifest = 70,
  kCheckpoint = 71,
  kModel = 72,
  kParallelism = 73,
  kRules = 74,
  kVerify = 75,
  kTorn = 76,
  kRouting = 96,
  kOverflow = 97,
  kContexts = 98,
  kMembership = 99,
};

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
