// SPDX-License-Identifier: Apache-2.0
#include "runtime/worker.hpp"

#include "runtime/wait.hpp"

namespace nccl_ext {

Worker::Worker() : thread_([this] { run(); }) {}

Worker::~Worker() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void Worker::post(std::function<void()> task) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  wake_.notify_one();
}

int Worker::pending() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return static_cast<int>(tasks_.size()) + (running_ ? 1 : 0);
}

void Worker::run() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    waitUntilTrue(wake_, lock, [this] { return stopping_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    {
      // The task is destroyed before `running_` falls: what it holds is gone when pending() is 0.
      const std::function<void()> task = std::move(tasks_.front());
      tasks_.pop_front();
      running_ = true;
      lock.unlock();
      task();
    }
    lock.lock();
    running_ = false;
  }
}

}  // namespace nccl_ext
