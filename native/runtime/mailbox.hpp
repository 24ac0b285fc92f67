// SPDX-License-Identifier: Apache-2.0
// Results on their way to the thread that owns a runtime. Everything behind a handle is touched by that thread alone,
// so nothing else needs a lock: workers compute on what they captured and post the rest here.
#pragma once

#include <functional>
#include <mutex>
#include <utility>
#include <vector>

namespace nccl_ext {

class Mailbox {
 public:
  // `notify` is called on the posting thread when the box was empty; it must make the owner call deliver() soon.
  explicit Mailbox(std::function<void()> notify) : notify_(std::move(notify)) {}

  void post(std::function<void()> letter) {
    const std::lock_guard<std::mutex> lock(mutex_);
    letters_.push_back(std::move(letter));
    if (letters_.size() == 1 && !closed_) notify_();
  }

  // Runs what was posted so far. On the owner's thread.
  void deliver() {
    std::vector<std::function<void()>> letters;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      letters.swap(letters_);
    }
    for (const std::function<void()>& letter : letters) letter();
  }

  // From here on nobody is notified: the owner's event loop is going away.
  void close() {
    const std::lock_guard<std::mutex> lock(mutex_);
    closed_ = true;
  }

 private:
  std::mutex mutex_;
  std::function<void()> notify_;
  std::vector<std::function<void()>> letters_;
  bool closed_ = false;
};

}  // namespace nccl_ext
