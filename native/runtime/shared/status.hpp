// SPDX-License-Identifier: Apache-2.0
// How a kernel reports an error: a record in pinned host memory that the host turns into a sentence.
//
// R1 One box has one writer at a time: the kernels of one stream, or of one graph, run one after the other, and in a
// kernel
//    one thread writes.
// R2 The fields come first, `code` last, with release; the host reads `code` with acquire and clears it when it took
// the record.
#pragma once

#include <cstdint>
#include <type_traits>

#include "generated/contract.hpp"
#include "runtime/shared/sync.hpp"

namespace nccl_ext {

// Operations that kernels name; the host has the words (status_text.cc).
enum class DeviceOp : std::int32_t { kNone = 0, kBarrier = 1 };

struct alignas(64) DeviceStatus {
  std::int32_t code = 0;  // ErrorCode; 0: no record
  std::int32_t op = 0;    // DeviceOp
  std::int32_t peer = -1;
  std::int32_t missing = 0;  // ranks that did not come
  std::uint64_t expected = 0;
  std::uint64_t seen = 0;
};

// What the host tells the running kernels of one rank, in pinned memory.
struct alignas(64) RankWords {
  std::int32_t stop = 0;     // ErrorCode with which every wait ends: this rank was aborted, or a peer is lost
  std::int32_t peer = -1;    // the lost peer
  std::int32_t drained = 0;  // set by the first kernel that failed: later ones do not wait
};

static_assert(sizeof(DeviceStatus) == 64 && std::is_trivially_copyable_v<DeviceStatus>);
static_assert(sizeof(RankWords) == 64 && std::is_trivially_copyable_v<RankWords>);

// Keeps `record` unless the box holds an earlier one.
NCCL_EXT_HD inline void report(DeviceStatus& box, const DeviceStatus& record) {
  if (peek<kSystem>(box.code) != 0) return;
  box.op = record.op;
  box.peer = record.peer;
  box.missing = record.missing;
  box.expected = record.expected;
  box.seen = record.seen;
  publish<kSystem>(box.code, record.code);
}

}  // namespace nccl_ext
