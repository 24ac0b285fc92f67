// SPDX-License-Identifier: Apache-2.0
// Where the collective host calls of a world meet: every rank brings a few bytes and gets everyone's.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/error.hpp"

namespace nccl_ext {

using Bytes = std::vector<std::uint8_t>;
using Clock = std::chrono::steady_clock;

// What a rank brings to a meeting.
struct Arrival {
  std::string op;     // the call, for errors: `exchange`, `registerWindow`
  std::string topic;  // must be the same on all ranks
  Bytes payload;
};

// Told whom the ranks have lost.
using OnLoss = std::function<void(int)>;

class Meeting {
 public:
  virtual ~Meeting() = default;

  // Blocks until every rank came to its k-th meeting, where this is the k-th of `rank`; returns all payloads by rank.
  // ERR_DISAGREEMENT on every rank when topics differ (the world stays usable), ERR_TIMEOUT naming the first rank that
  // did not come by `deadline`, ERR_RANK_LOST when a rank left, and whatever reason this rank itself left with. A
  // meeting to which all came is held, whoever leaves then.
  virtual Outcome<std::vector<Bytes>> gather(int rank, const Arrival& arrival, Clock::time_point deadline) = 0;

  // `rank` leaves for good: its own gather ends with `reason`, those of others with ERR_RANK_LOST, which names the rank
  // that `reason` does when it was lost itself or did not come. From any thread, without waiting.
  virtual void leave(int rank, const ErrorRecord& reason) = 0;

  // Calls `told` once, from any thread, when another rank leaves that could not go on: aborted, without a word, or because it
  // lost a rank, which is named then. At once if that has happened; never for ranks that were disposed in order, nor after
  // `rank` itself has left. For waits that nobody here can end, of kernels for those of other processes.
  virtual void watch(int rank, OnLoss told) = 0;

  // The meetings of a part of these ranks, for the ranks of it in this process, one of which is `rank` of `size`. Its
  // ranks use one name, which is given once.
  virtual std::unique_ptr<Meeting> group(const std::string& name, int rank, int size) = 0;
};

// Whether `error` leaves ranks out of step with each other, so that the one that got it must stop communicating.
inline bool poisons(const ErrorRecord& error) {
  return error.code == ErrorCode::kTimeout || error.code == ErrorCode::kRankLost || error.code == ErrorCode::kAborted ||
         error.code == ErrorCode::kInternal;
}

// "rank 3", "ranks 1, 2 and 5 more".
std::string rankNames(const std::vector<int>& ranks);

}  // namespace nccl_ext
