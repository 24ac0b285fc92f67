// SPDX-License-Identifier: Apache-2.0
// Generated from packages/core/src by scripts/native-generate.mjs; do not edit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace nccl_ext {

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
  kKernel = 43,
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

// core/src/contract/device-records.ts: operations that records name.
enum class DeviceOp : std::int32_t {
  kNone = 0,
  kBarrier = 1,
  kKernel = 2,
  kCopy = 3,
  kFill = 4,
  kUpload = 5,
  kDownload = 6,
  kTransfer = 7,
};

// The error record of a stream or graph, in pinned memory.
struct alignas(64) DeviceStatus {
  std::int32_t code = 0;       // ErrorCode; 0: no record. Written last
  std::int32_t op = 0;         // DeviceOp
  std::int32_t peer = -1;      // the rank that is missing or at fault, -1 none
  std::int32_t missing = 0;    // ranks that did not come
  std::uint64_t expected = 0;  // what was waited for or allowed
  std::uint64_t seen = 0;      // what was there instead
  std::int32_t claim = 0;      // 1 from the first writer on, until the host took the record
};
static_assert(sizeof(DeviceStatus) == 64 && std::is_trivially_copyable_v<DeviceStatus>);
static_assert(offsetof(DeviceStatus, code) == 0);
static_assert(offsetof(DeviceStatus, op) == 4);
static_assert(offsetof(DeviceStatus, peer) == 8);
static_assert(offsetof(DeviceStatus, missing) == 12);
static_assert(offsetof(DeviceStatus, expected) == 16);
static_assert(offsetof(DeviceStatus, seen) == 24);
static_assert(offsetof(DeviceStatus, claim) == 32);

// What the host tells the running kernels of one rank, in pinned memory.
struct alignas(64) RankWords {
  std::int32_t stop = 0;     // ErrorCode with which every wait ends; 0: go on
  std::int32_t peer = -1;    // the lost peer
  std::int32_t drained = 0;  // 1 once a kernel of this rank failed: later ones do not wait
};
static_assert(sizeof(RankWords) == 64 && std::is_trivially_copyable_v<RankWords>);
static_assert(offsetof(RankWords, stop) == 0);
static_assert(offsetof(RankWords, peer) == 4);
static_assert(offsetof(RankWords, drained) == 8);

// core/src/contract/kernel-guard.ts: a user's kernel takes it by value; the backend fills it for every launch.
struct KernelGuard {
  std::uint64_t status = 0;     // address of the DeviceStatus of the stream or graph, in pinned memory
  std::uint64_t words = 0;      // address of the RankWords of this rank, in pinned memory
  std::uint64_t timeoutNs = 0;  // deadline of a wait, in nanoseconds of the global timer
  std::int32_t rank = 0;        // of the communicator that launched the kernel
  std::int32_t size = 0;        // ranks of that communicator
};
static_assert(sizeof(KernelGuard) == 32 && std::is_trivially_copyable_v<KernelGuard>);
static_assert(offsetof(KernelGuard, status) == 0);
static_assert(offsetof(KernelGuard, words) == 8);
static_assert(offsetof(KernelGuard, timeoutNs) == 16);
static_assert(offsetof(KernelGuard, rank) == 24);
static_assert(offsetof(KernelGuard, size) == 28);

}  // namespace nccl_ext
