// SPDX-License-Identifier: Apache-2.0
// The end of a verified transfer: each receiver compares the sums of what arrived with those of what was sent.
#pragma once

#include "m2n/shared/hash.hpp"

namespace nccl_ext {

// What must have arrived from one sender for one tensor.
struct HashCheck {
  std::uint64_t sent = 0;  // address of the sender's sum for even epochs
  std::uint64_t odd = 0;   // bytes from there to that for odd ones
  std::int32_t sender = 0;
  std::int32_t tensor = 0;
  std::int32_t stage = 0;
  std::int32_t unused = 0;
};

struct CompareArgs {
  const HashCheck* checks;  // [received.groups]
  HashSums received;
  HashSums sent;     // cleared with `received` before an execution,
  HashTaken* taken;  // [kHashes], and with these
  TransferState* state;
  TransferCounts* counts;
  DeviceStatus* status;
  RankWords* words;
};

// By one thread: takes back that the stage's kernel has counted the execution as one without an error.
NCCL_EXT_HD inline void discount(const CompareArgs& args) {
  put<kSystem>(args.counts->completed, --args.state->completed);
}

// Compares one group at the end of execution `epoch`; whether it arrived as it was sent. A difference leaves a record.
NCCL_EXT_HD inline bool compareGroup(const CompareArgs& args, std::uint32_t group, std::uint64_t epoch) {
  const HashCheck& check = args.checks[group];
  const std::uint64_t sent = peek<kSystem>(*reinterpret_cast<std::uint64_t*>(check.sent + (epoch & 1) * check.odd));
  const std::uint64_t arrived = sumsOf(args.received, epoch)[group];
  if (sent == arrived) return true;
  DeviceStatus record;
  record.code = static_cast<std::int32_t>(ErrorCode::kVerify);
  record.op = static_cast<std::int32_t>(DeviceOp::kTransfer);
  record.peer = check.sender;
  record.missing = check.tensor * 2 + check.stage;
  record.expected = sent;
  record.seen = arrived;
  report(*args.status, record);
  return false;
}

}  // namespace nccl_ext
