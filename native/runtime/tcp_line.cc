// SPDX-License-Identifier: Apache-2.0
#include "runtime/tcp_line.hpp"

#include "runtime/tcp_frames.hpp"
#include "runtime/wait.hpp"

namespace nccl_ext {
namespace {

// A few bytes find room at once, unless the rank has not read for long.
constexpr std::chrono::milliseconds kPatience{100};

}  // namespace

bool TcpLine::send(const Bytes& frame, Clock::time_point deadline) {
  {
    std::unique_lock<std::mutex> lock(mutex_);
    waitUntilTrue(freed_, lock, [this] { return !busy_; });
    busy_ = true;
  }
  const bool sent = socket_.send(frame, deadline);
  payAndFree();
  return sent;
}

void TcpLine::tell(int lost) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    owed_ = lost;
    if (busy_) return;
    busy_ = true;
  }
  payAndFree();
}

void TcpLine::payAndFree() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (owed_) {
    const int lost = *std::exchange(owed_, std::nullopt);
    lock.unlock();
    // Behind a part of a frame nothing can be said any more.
    if (!socket_.send(encode(Notice{lost, {}}), Clock::now() + kPatience)) socket_.shutdown();
    lock.lock();
  }
  busy_ = false;
  freed_.notify_one();
}

}  // namespace nccl_ext
