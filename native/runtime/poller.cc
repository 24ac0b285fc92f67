// SPDX-License-Identifier: Apache-2.0
#include "runtime/poller.hpp"

#include <algorithm>
#include <chrono>

#include "runtime/wait.hpp"

namespace nccl_ext {
namespace {

using std::chrono::microseconds;

// Short waits are answered within microseconds; a long one costs little of a core.
constexpr int kBusyRounds = 2000;
constexpr microseconds kShortSleep{50};
constexpr int kShortRounds = 4000;
constexpr microseconds kLongSleep{500};

}  // namespace

Poller::Poller() : thread_([this] { run(); }) {}

Poller::~Poller() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void Poller::watch(const void* owner, std::function<bool()> poll) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    items_.push_back({owner, std::move(poll)});
  }
  wake_.notify_one();
}

void Poller::forget(const void* owner) {
  const std::lock_guard<std::mutex> lock(mutex_);
  items_.erase(std::remove_if(items_.begin(), items_.end(), [owner](const Item& item) { return item.owner == owner; }),
               items_.end());
}

void Poller::run() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (int idle = 0; !stopping_;) {
    if (items_.empty()) {
      waitUntilTrue(wake_, lock, [this] { return stopping_ || !items_.empty(); });
      idle = 0;
      continue;
    }
    // Polls run under the lock, so that forget() is final; they are a query each.
    const auto finished = std::remove_if(items_.begin(), items_.end(), [](const Item& item) { return item.poll(); });
    idle = finished == items_.end() ? idle + 1 : 0;
    items_.erase(finished, items_.end());
    const microseconds pause = idle < kBusyRounds                  ? microseconds(0)
                               : idle < kBusyRounds + kShortRounds ? kShortSleep
                                                                   : kLongSleep;
    if (pause.count() > 0) {
      wake_.wait_for(lock, pause, [this] { return stopping_; });
    } else {
      lock.unlock();
      std::this_thread::yield();
      lock.lock();
    }
  }
}

}  // namespace nccl_ext
