// SPDX-License-Identifier: Apache-2.0
// Waits for device work without a thread per wait: one thread asks about everything that is awaited.
//
// Not cudaLaunchHostFunc, which costs the stream a stop at the host and is never called after a sticky error; not
// cudaEventSynchronize, which waits for one event and would let a stream that hangs hold up the others.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace nccl_ext {

class Poller {
 public:
  Poller();
  ~Poller();
  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;

  // Calls `poll` on the poller's thread until it returns true. `owner` names the group for forget().
  void watch(const void* owner, std::function<bool()> poll);
  // Drops what `owner` watches; when it returns, none of it runs. Not from within a poll.
  void forget(const void* owner);

 private:
  struct Item {
    const void* owner;
    std::function<bool()> poll;
  };

  void run();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Item> items_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace nccl_ext
