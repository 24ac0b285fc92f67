// SPDX-License-Identifier: Apache-2.0
// What the kernel of one stage of a transfer is given. Nothing in it changes between executions, so a graph may hold it.
#pragma once

#include <cstdint>
#include <type_traits>

#include "m2n/shared/control.hpp"
#include "m2n/shared/program.hpp"
#include "runtime/shared/guarded.hpp"

namespace nccl_ext {

struct TransferArgs {
  TransferWork work;  // of this stage; pointers into device memory
  TransferCell* const*
      controls;  // [size] control block of every rank, in device memory; null for ranks without business here
  const std::int32_t* grantees;   // [granteeCount] ranks that send to this one in either stage; granted in stage 0
  const std::int32_t* receivers;  // [receiverCount] ranks that this stage sends to, without this one
  const std::int32_t* senders;    // [senderCount] ranks that send to this one in this stage, without this one
  TransferState* state;           // in device memory
  TransferCounts* counts;         // pinned
  DeviceStatus* status;           // box of the stream or graph, pinned
  RankWords* words;               // of this rank, pinned
  std::uint64_t timeoutNs;        // of one wait for a peer that makes no progress
  std::int32_t granteeCount;
  std::int32_t receiverCount;
  std::int32_t senderCount;
  std::int32_t rank;
  std::int32_t size;
  std::int32_t stage;    // 0 or 1
  std::int32_t step;     // of the execution's kernels, from 0 on
  std::int32_t counted;  // 1: what it writes counts as the rank's progress
  std::int32_t watched;  // 1: the host looks which kernel ran last
  std::int32_t last;     // 1: the last kernel of an execution, which ends the epoch
};
static_assert(std::is_trivially_copyable_v<TransferArgs>);

NCCL_EXT_HD inline Guard guardOf(const TransferArgs& args) {
  return {args.status, args.words, DeviceOp::kTransfer};
}

}  // namespace nccl_ext
