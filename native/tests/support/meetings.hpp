// SPDX-License-Identifier: Apache-2.0
// What tests of meetings begin with: the ranks of a world, in one process or connected over TCP.
#pragma once

#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "runtime/tcp_meeting.hpp"
#include "tests/support/free_port.hpp"

namespace nccl_ext::test {

using Result = Outcome<std::vector<Bytes>>;
using std::chrono::milliseconds;

inline Arrival arrivalOf(int rank, const std::string& topic) {
  return {"exchange", topic, Bytes(static_cast<std::size_t>(rank + 1), static_cast<std::uint8_t>(rank))};
}

// One meeting object per rank, as processes have; local ranks share one.
class Meetings {
 public:
  explicit Meetings(int size, bool tcp) : size_(size) {
    const int port = tcp ? freePort() : 0;
    if (!tcp) shared_ = std::make_unique<LocalMeeting>(size);
    for (int rank = 0; tcp && rank < size; rank++)
      own_.push_back(std::make_unique<TcpMeeting>(configOf(rank, size, port)));
  }

  static TcpMeetingConfig configOf(int rank, int size, int port) {
    TcpMeetingConfig config;
    config.rank = rank;
    config.size = size;
    config.address = "127.0.0.1";
    config.port = port;
    config.timeout = milliseconds(1500);
    config.token = "secret";
    return config;
  }

  Meeting& of(int rank) { return shared_ ? *shared_ : *own_[static_cast<std::size_t>(rank)]; }

  std::future<Result> gather(int rank, const std::string& topic, milliseconds wait = milliseconds(5000)) {
    return std::async(std::launch::async, [this, rank, topic, wait] {
      return of(rank).gather(rank, arrivalOf(rank, topic), Clock::now() + wait);
    });
  }

  std::vector<std::future<Result>> all(const std::string& topic) {
    std::vector<std::future<Result>> results;
    for (int rank = 0; rank < size_; rank++) results.push_back(gather(rank, topic));
    return results;
  }

 private:
  int size_;
  std::unique_ptr<Meeting> shared_;
  std::vector<std::unique_ptr<Meeting>> own_;
};

// What a rank leaves with that waited in vain for another one.
inline Failure late(int rank, int peer) {
  return fail(ErrorCode::kTimeout, "barrier",
              "rank " + std::to_string(rank) + " waited too long in barrier for rank " + std::to_string(peer))
      .ofRank(rank)
      .fromPeer(peer);
}

}  // namespace nccl_ext::test
