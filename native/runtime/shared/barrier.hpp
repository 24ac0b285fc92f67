// SPDX-License-Identifier: Apache-2.0
// The barrier of all ranks on a stream, as a protocol that host and device share.
//
// Rank r owns one flag per peer in its control block. The n-th barrier of r stores n into flags[r] of every peer, and
// waits until its own flags hold n from everyone. Barriers of one rank never overlap (the host serialises them), so the
// epoch has one writer.
//
// edge B1   all ranks -> all ranks: whatever a rank's stream wrote before its barrier is visible behind every other's.
//           release.system by the thread that stores to a peer, behind a CTA barrier and the stream's order;
//           acquire.system by the thread that waits for that peer, before a CTA barrier. Farthest reader: a peer GPU.
// failure   deadline, abort or lost peer: a record, `drained`, and the epoch advances all the same.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/shared/guarded.hpp"
#include "runtime/shared/wait_end.hpp"

namespace nccl_ext {

// One writer per cell; 128 bytes keep writers off each other's cache lines.
struct alignas(128) BarrierFlag {
  std::uint64_t epoch = 0;
};
static_assert(sizeof(BarrierFlag) == 128);

struct BarrierArgs {
  BarrierFlag* const* peers;  // [size] flags of every rank, in device memory
  BarrierFlag* own;           // [size] flags of this rank
  std::uint64_t* epoch;       // barriers done, in device memory, written by this rank's barriers alone
  DeviceStatus* status;       // box of the stream or graph, pinned
  RankWords* words;           // of this rank, pinned
  std::uint64_t timeoutNs;
  std::int32_t rank;
  std::int32_t size;
};

NCCL_EXT_HD inline Guard guardOf(const BarrierArgs& args) {
  return {args.status, args.words, DeviceOp::kBarrier};
}

// Tells `peer` that this rank has come. // B1 release
NCCL_EXT_HD inline void announce(const BarrierArgs& args, int peer, std::uint64_t epoch) {
  publish<kSystem>(args.peers[peer][args.rank].epoch, epoch);
}

// Waits for `peer`. `now` gives nanoseconds; `deadline` is on its clock. // B1 acquire
template <class Clock>
NCCL_EXT_HD inline WaitEnd await(const BarrierArgs& args, int peer, std::uint64_t epoch, std::uint64_t deadline,
                                 Clock now) {
  // Reading the host's word crosses PCIe: seldom.
  constexpr unsigned kSpinsPerLook = 256;
  for (unsigned spins = 1;; spins++) {
    if (hasReached(observe<kSystem>(args.own[peer].epoch), epoch)) return WaitEnd::kArrived;
    if (spins % kSpinsPerLook != 0) continue;
    if (peek<kSystem>(args.words->stop) != 0) return WaitEnd::kStopped;
    if (static_cast<std::int64_t>(now() - deadline) >= 0) return WaitEnd::kExpired;
  }
}

// The record of a barrier that `missing` ranks did not reach, `peer` the first of them.
NCCL_EXT_HD inline DeviceStatus failureOf(const BarrierArgs& args, WaitEnd end, int peer, int missing,
                                          std::uint64_t epoch) {
  DeviceStatus record;
  record.op = static_cast<std::int32_t>(DeviceOp::kBarrier);
  record.missing = missing;
  record.expected = epoch;
  record.seen = peek<kSystem>(args.own[peer].epoch);
  record.peer = peer;
  record.code = static_cast<std::int32_t>(ErrorCode::kTimeout);
  if (end == WaitEnd::kStopped) {
    record.code = observe<kSystem>(args.words->stop);
    record.peer = peek<kSystem>(args.words->peer);
  }
  return record;
}

}  // namespace nccl_ext
