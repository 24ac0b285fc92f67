// SPDX-License-Identifier: Apache-2.0
// Rank 0's end of one rank's connection: answers by the thread that serves it, and in between what the rank must hear at once.
#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>

#include "runtime/socket.hpp"

namespace nccl_ext {

class TcpLine {
 public:
  explicit TcpLine(Socket socket) : socket_(std::move(socket)) {}

  // For receiving, by the thread that serves the connection, and for ending it.
  Socket& socket() { return socket_; }
  // False when the connection ended or `deadline` passed.
  bool send(const Bytes& frame, Clock::time_point deadline);
  // Says that `lost` is gone. From any thread; it waits only for a rank that does not read. While an answer is being sent, the loss follows it.
  void tell(int lost);

 private:
  void payAndFree();

  Socket socket_;
  std::mutex mutex_;
  std::condition_variable freed_;
  bool busy_ = false;        // a thread sends
  std::optional<int> owed_;  // the rank of which it tells when it is done
};

}  // namespace nccl_ext
