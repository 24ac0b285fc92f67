// SPDX-License-Identifier: Apache-2.0
// A thread that runs tasks in order: collective host calls block here, never on JavaScript's thread or on libuv's four.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace nccl_ext {

class Worker {
 public:
  Worker();
  // Runs what was posted, then ends. A task that blocks must have been told to stop before.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  void post(std::function<void()> task);
  // Tasks posted and not finished.
  int pending() const;

 private:
  void run();

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> tasks_;
  bool running_ = false;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace nccl_ext
