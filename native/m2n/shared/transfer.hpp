// SPDX-License-Identifier: Apache-2.0
// Who may touch what during one execution of a transfer, as a protocol that host and device share.
//
// Each rank counts its executions in `TransferState::epoch`; as all ranks enqueue the same ones, the number names an execution
// on every rank. Stages of one rank follow each other on a stream and executions do not overlap (the host serialises them), so
// the epoch has one writer, the last CTA of the last stage, and every CTA reads it when it begins.
//
// edges  T1 grant    a receiver -> its senders: what its stream did before is done, its destinations may be written.
//                    release.system by a thread of CTA 0, behind the stream's order; acquire.system by a thread that then stores,
//                    or that a warp or CTA barrier spreads from. Farthest reader: a peer GPU.
//        T2 arrival  a sender -> its receivers: every byte of a stage is in. All threads of a CTA -> CTA barrier -> one thread
//                    counts the CTA in (T3) -> the last one, CTA barrier, a thread per receiver: release.system; acquire.system by
//                    a thread of the receiver's last CTA, before a CTA barrier and the kernel's end.
//        T4 admit    CTA 0 -> every CTA: whether the stage runs. It alone asks the host's memory: a read takes about a microsecond
//                    and reads of many CTAs queue up. release.device and acquire.device by one thread each.
//        T3 done     a CTA -> the last CTA: its stores are made, its failure is noted. One acq_rel.device addition is both ends.
// failure  deadline, abort or lost peer: a record, `drained` and TransferState::failed; no arrival is published, and the epoch
//          advances all the same. A deadline begins anew while the peer that is waited for writes anything.
#pragma once

#include "m2n/shared/transfer_args.hpp"
#include "runtime/shared/wait_end.hpp"

namespace nccl_ext {

// Lets `sender` write here. // T1 release
NCCL_EXT_HD inline void grant(const TransferArgs& args, int sender, std::uint64_t epoch) {
  publish<kSystem>(args.controls[sender][grantCell(args.rank)].value, epoch);
}

// Tells `receiver` that all bytes of this stage are in. // T2 release
NCCL_EXT_HD inline void arrive(const TransferArgs& args, int receiver, std::uint64_t epoch) {
  publish<kSystem>(args.controls[receiver][arrivalCell(args.size, args.stage, args.rank)].value, epoch);
}

// Waits until a cell that `peer` writes has reached `epoch`. `now` gives nanoseconds.
template <class Clock>
NCCL_EXT_HD inline WaitEnd awaitCell(const TransferArgs& args, TransferCell& cell, int peer, std::uint64_t epoch,
                                     Clock now) {
  // Reading the host's words crosses PCIe, reading the peer's progress NVLink, and many threads wait: seldom, about a millisecond.
  constexpr unsigned kSpinsPerLook = 2048;
  std::uint64_t& progress = args.controls[peer][progressCell(args.size)].value;
  std::uint64_t begun = 0, written = 0;
  // 2^32 spins are less than an hour, and timeouts may be weeks.
  for (std::uint64_t spins = 1;; spins++) {
    if (hasReached(observe<kSystem>(cell.value), epoch)) return WaitEnd::kArrived;
    if (spins % kSpinsPerLook != 0) continue;
    if (peek<kSystem>(args.words->stop) != 0 || peek<kSystem>(args.words->drained) != 0) return WaitEnd::kStopped;
    const std::uint64_t time = now();
    if (spins != kSpinsPerLook && time - begun < args.timeoutNs) continue;
    const std::uint64_t seen = peek<kSystem>(progress);
    if (spins != kSpinsPerLook && seen == written) return WaitEnd::kExpired;
    begun = time;
    written = seen;
  }
}

// Waits until this rank may write to `receiver`. // T1 acquire
template <class Clock>
NCCL_EXT_HD inline WaitEnd awaitGrant(const TransferArgs& args, int receiver, std::uint64_t epoch, Clock now) {
  return awaitCell(args, args.controls[args.rank][grantCell(receiver)], receiver, epoch, now);
}

// Waits for everything that `sender` sends in this stage. // T2 acquire
template <class Clock>
NCCL_EXT_HD inline WaitEnd awaitArrival(const TransferArgs& args, int sender, std::uint64_t epoch, Clock now) {
  return awaitCell(args, args.controls[args.rank][arrivalCell(args.size, args.stage, sender)], sender, epoch, now);
}

// What CTA 0 says about a kernel of an execution, of which there are fewer than 2^14; the lowest bit: skip it.
NCCL_EXT_HD inline std::uint64_t admissionOf(const TransferArgs& args, std::uint64_t epoch, bool skips) {
  const std::uint64_t kernel = static_cast<std::uint64_t>(args.step) * 2 + static_cast<std::uint64_t>(args.stage);
  return (epoch << 16) + kernel * 2 + (skips ? 1 : 0);
}

// By one thread of CTA 0: whether this stage runs, given why it must not. If not, it says so to the host.
NCCL_EXT_HD inline bool mayRun(const TransferArgs& args, ErrorCode reason) {
  if (reason == ErrorCode::kNone) return true;
  reportSkipped(guardOf(args), reason, Skipped::kUntouched);
  publish<kDevice>(args.state->failed, std::uint32_t{1});
  return false;
}

// By the same thread: tells the other CTAs. // T4 release
NCCL_EXT_HD inline void admit(const TransferArgs& args, std::uint64_t epoch, bool runs) {
  publish<kDevice>(args.state->admission, admissionOf(args, epoch, !runs));
}

// Waits for CTA 0, which waits for nobody and was started first: no deadline. // T4 acquire
NCCL_EXT_HD inline bool isAdmitted(const TransferArgs& args, std::uint64_t epoch) {
  const std::uint64_t runs = admissionOf(args, epoch, false), skips = admissionOf(args, epoch, true);
  for (;;) {
    const std::uint64_t seen = observe<kDevice>(args.state->admission);
    if (seen == runs || seen == skips) return seen == runs;
  }
}

// Counts a CTA in when all its stores are made; whether it was the last one. // T3 release // T3 acquire
NCCL_EXT_HD inline bool isLast(const TransferArgs& args) {
  return countIn<kDevice>(args.state->done) == static_cast<std::uint32_t>(args.work.ctas) - 1;
}

// Leaves the record of a wait for `missing` ranks, `peer` the first of them, and ends this execution and every later one.
NCCL_EXT_HD inline void failTransfer(const TransferArgs& args, WaitEnd end, int peer, int missing, std::uint64_t epoch,
                                     std::uint64_t seen) {
  DeviceStatus record;
  record.op = static_cast<std::int32_t>(DeviceOp::kTransfer);
  record.missing = missing;
  record.expected = epoch;
  record.seen = seen;
  record.peer = peer;
  record.code = static_cast<std::int32_t>(ErrorCode::kTimeout);
  if (end == WaitEnd::kStopped) {
    // Behind the claim of a thread of this kernel that failed first.
    (void)observe<kSystem>(args.words->drained);
    record.code = observe<kSystem>(args.words->stop);
    record.peer = peek<kSystem>(args.words->peer);
  }
  // Something else of the rank has failed and told why, maybe on another stream. This one must learn that its execution is torn.
  if (record.code == 0 || record.code == static_cast<std::int32_t>(ErrorCode::kPoisoned))
    reportSkipped(guardOf(args), ErrorCode::kPoisoned, Skipped::kRanAllTheSame);
  else
    report(*args.status, record);
  publish<kDevice>(args.state->failed, std::uint32_t{1});
  publish<kSystem>(args.words->drained, 1);
}

// By one thread of the last CTA, while others may still wait for arrivals: makes room for the next stage and tells the host how far
// this rank is.
NCCL_EXT_HD inline void closeStage(const TransferArgs& args) {
  args.state->done = 0;
  for (TransferState::Taken& part : args.state->taken) part.tiles = 0;
  put<kSystem>(args.counts->written, peek<kDevice>(args.controls[args.rank][progressCell(args.size)].value));
}

// By one thread of the last CTA when nothing of the stage is left to do. `completed` is what the state says.
NCCL_EXT_HD inline void endStage(const TransferArgs& args, std::uint64_t epoch, bool failed, std::uint64_t completed) {
  if (args.watched != 0) put<kSystem>(args.counts->steps, ++args.state->steps);
  if (args.last == 0) return;
  TransferState& state = *args.state;
  if (!failed) put<kSystem>(args.counts->completed, state.completed = completed + 1);
  state.failed = 0;
  state.epoch = epoch;
}

}  // namespace nccl_ext
