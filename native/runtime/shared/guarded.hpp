// SPDX-License-Identifier: Apache-2.0
// What becomes of work that is queued behind a failure of its rank: it must not run, and says so in its stream's box.
//
// Our own kernels and host functions ask before they touch anything. An operation of the driver's cannot; a kernel
// behind it says that it has run.
#pragma once

#include "runtime/shared/status.hpp"

namespace nccl_ext {

// Of one operation: who may forbid it, and where that is told.
struct Guard {
  DeviceStatus* status;  // box of the stream or graph, pinned
  RankWords* words;      // of the rank, pinned
  DeviceOp op;
};

// What a skipped operation's record says in `seen`.
enum class Skipped : std::uint64_t { kUntouched = 0, kRanAllTheSame = 1 };

// What words that say `stop` and `drained` forbid; kNone: nothing. A lost peer alone forbids nothing but waiting for it.
NCCL_EXT_HD inline ErrorCode reasonOf(ErrorCode stop, bool drained) {
  if (stop == ErrorCode::kAborted) return stop;
  const bool failed = stop == ErrorCode::kPoisoned || drained;
  return failed ? ErrorCode::kPoisoned : ErrorCode::kNone;
}

// Why the operation must not run; kNone: it may. Reads the host's memory twice, about a microsecond each; a warp does it in
// one read (guard_device.cuh).
NCCL_EXT_HD inline ErrorCode skipReason(const Guard& guard) {
  const bool drained = peek<kSystem>(guard.words->drained) != 0;
  return reasonOf(static_cast<ErrorCode>(observe<kSystem>(guard.words->stop)), drained);
}

NCCL_EXT_HD inline void reportSkipped(const Guard& guard, ErrorCode reason, Skipped what) {
  DeviceStatus record;
  record.code = static_cast<std::int32_t>(reason);
  record.op = static_cast<std::int32_t>(guard.op);
  record.seen = static_cast<std::uint64_t>(what);
  report(*guard.status, record);
}

}  // namespace nccl_ext
