// SPDX-License-Identifier: Apache-2.0
#include "m2n/sent_watch.hpp"

#include <algorithm>

namespace nccl_ext {
namespace {

std::vector<int> peersOf(const std::vector<Sending>& group) {
  std::vector<int> peers;
  for (const Sending& one : group) peers.push_back(one.peer);
  std::sort(peers.begin(), peers.end());
  peers.erase(std::unique(peers.begin(), peers.end()), peers.end());
  return peers;
}

}  // namespace

SentWatch::SentWatch(const DeviceProgram& program, TransferCounts& counts, RankWords& words, Clock::duration timeout)
    : counts_(counts), words_(words), timeout_(timeout) {
  for (int stage = 0; stage < program.stageCount; stage++) {
    groups_.emplace_back();
    for (const SentRound& round : program.rounds[stage]) {
      groups_.emplace_back();
      groups_.push_back(peersOf(round.group));
    }
  }
}

bool SentWatch::expect() {
  const std::lock_guard<std::mutex> lock(mutex_);
  expected_ += groups_.size();
  return !std::exchange(watched_, true);
}

SentState SentWatch::look(Clock::time_point now) {
  const std::uint64_t done = stepsDone();
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (done >= expected_) {
      watched_ = false;
      return SentState::kDone;
    }
  }
  if (peek<kSystem>(words_.stop) != 0 || peek<kSystem>(words_.drained) != 0) return SentState::kStopped;
  if (done != seen_ || groups_[done % groups_.size()].empty()) {
    seen_ = done;
    since_ = now;
  }
  return now - since_ < timeout_ ? SentState::kGoing : SentState::kStuck;
}

std::vector<int> SentWatch::awaited() const {
  return groups_[stepsDone() % groups_.size()];
}

std::uint64_t SentWatch::stepsDone() const {
  return peek<kSystem>(counts_.steps);
}

}  // namespace nccl_ext
