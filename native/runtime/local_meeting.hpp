// SPDX-License-Identifier: Apache-2.0
// The meetings of ranks whose threads share this process; rank 0 of a world of processes runs one too.
#pragma once

#include <condition_variable>
#include <map>
#include <mutex>

#include "runtime/meeting.hpp"

namespace nccl_ext {

class LocalMeeting final : public Meeting {
 public:
  explicit LocalMeeting(int size);
  int size() const { return size_; }

  Outcome<std::vector<Bytes>> gather(int rank, const Arrival& arrival, Clock::time_point deadline) override;
  void leave(int rank, const ErrorRecord& reason) override;
  void watch(int rank, OnLoss told) override;
  std::unique_ptr<Meeting> group(const std::string& name, int rank, int size) override;

  // What ends `rank` when it can meet nobody any more: the first rank that left, or the one that it lost. None while all
  // are here.
  std::optional<ErrorRecord> lossFor(int rank);

 private:
  // One meeting. It stays until every rank has been there, so that a late rank learns what became of it.
  struct Session {
    std::vector<std::optional<Arrival>> arrivals;
    std::optional<ErrorRecord> failure;  // without rank; set once
    int came = 0;                        // and had not left before
    int went = 0;
  };

  bool settled(const Session& session) const;
  std::optional<ErrorRecord> lost(int rank, const Session* session, const std::string& op) const;
  int causeOf(int peer) const;
  std::optional<int> lostTo(int rank) const;
  Outcome<std::vector<Bytes>> outcomeOf(const Session& session, int rank) const;
  ErrorRecord expired(const Session& session, const Arrival& arrival) const;

  const int size_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::uint64_t> next_;               // by rank: its next meeting
  std::vector<std::optional<ErrorRecord>> left_;  // by rank: why it left
  std::vector<int> leavers_;                      // in the order in which they left
  std::map<std::uint64_t, Session> sessions_;
  std::map<int, OnLoss> watchers_;  // by rank
};

}  // namespace nccl_ext
