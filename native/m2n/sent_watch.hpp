// SPDX-License-Identifier: Apache-2.0
// Sees from the host whether executions that send are going on: a kernel of NCCL waits for its peers without a deadline.
//
// Only the wait for a group is timed, by the steps that kernels count (TransferCounts::steps): the kernels around it have
// deadlines of their own, and before its first step an execution waits for what its stream did before.
#pragma once

#include <chrono>
#include <mutex>
#include <vector>

#include "m2n/device_program.hpp"

namespace nccl_ext {

// What a look at a transfer found.
enum class SentState { kGoing, kDone, kStuck, kStopped };

class SentWatch {
 public:
  using Clock = std::chrono::steady_clock;

  // Both cells are pinned and outlive every look.
  SentWatch(const DeviceProgram& program, TransferCounts& counts, RankWords& words, Clock::duration timeout);

  // Another execution is on a stream; true: nobody looks yet.
  bool expect();
  // From one thread. kGoing: look again; kStuck: a group took longer than the timeout; kStopped: the rank has failed, was
  // aborted or lost a peer while executions were under way.
  SentState look(Clock::time_point now);
  // Peers of the group that it waits for.
  std::vector<int> awaited() const;

 private:
  std::uint64_t stepsDone() const;

  TransferCounts& counts_;
  RankWords& words_;
  const Clock::duration timeout_;
  std::vector<std::vector<int>> groups_;  // by step of an execution: peers of the group before it
  std::mutex mutex_;                      // of what both sides touch
  std::uint64_t expected_ = 0;
  bool watched_ = false;
  // Of the thread that looks.
  std::uint64_t seen_ = 0;
  Clock::time_point since_;
};

}  // namespace nccl_ext
