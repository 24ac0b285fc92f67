// SPDX-License-Identifier: Apache-2.0
// Drives a Runtime from a test: its owner's thread is the test's, which delivers mail until what it waits for has come.
#pragma once

#include <gtest/gtest.h>

#include <condition_variable>
#include <cstdlib>

#include "runtime/runtime.hpp"

namespace nccl_ext::test {

class Harness {
 public:
  explicit Harness(RuntimeConfig config = {13, "0.0.0", {}}) : runtime(std::move(config), [this] { ring(); }) {}

  // Delivers mail until `done` holds; fails the test after ten seconds.
  template <class Predicate>
  void until(Predicate done) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!done()) {
      {
        std::unique_lock<std::mutex> lock(mutex_);
        rung_.wait_for(lock, std::chrono::milliseconds(20), [this] { return ringing_; });
        ringing_ = false;
      }
      runtime.mailbox().deliver();
      ASSERT_LT(std::chrono::steady_clock::now(), deadline) << "nothing came";
    }
  }

  // Ranks of one world; a failure fails the test and gives none.
  std::vector<Handle> ranks(int count, Timeout timeout = Timeout(2000)) {
    const auto outcome = tryRanks({count, {}, timeout});
    EXPECT_TRUE(outcome) << (outcome ? "" : outcome.error().detail);
    return outcome ? outcome.value() : std::vector<Handle>();
  }

  Outcome<std::vector<Handle>> tryRanks(const LocalRanksConfig& config) {
    std::optional<Outcome<std::vector<Handle>>> result;
    runtime.createLocalRanks(config, [&](auto outcome) { result.emplace(std::move(outcome)); });
    until([&] { return result.has_value(); });
    return result.value_or(fail(ErrorCode::kInternal, "test", "no result"));
  }

  Status synchronize(Handle stream) {
    std::optional<Status> result;
    runtime.synchronize(stream, [&](Status status) { result.emplace(std::move(status)); });
    until([&] { return result.has_value(); });
    return result.value_or(fail(ErrorCode::kInternal, "test", "no result"));
  }

  void dispose(const std::vector<Handle>& handles) {
    for (const Handle rank : handles) {
      std::optional<Status> result;
      runtime.disposeRank(rank, [&](Status status) { result.emplace(std::move(status)); });
      until([&] { return result.has_value(); });
      EXPECT_TRUE(result && *result) << (result && !*result ? result->error().detail : "");
    }
  }

 private:
  void ring() {
    const std::lock_guard<std::mutex> lock(mutex_);
    ringing_ = true;
    rung_.notify_one();
  }

  std::mutex mutex_;
  std::condition_variable rung_;
  bool ringing_ = false;

 public:
  // Last, so that it ends before what its notifications touch.
  Runtime runtime;
};

template <class T>
T valueOf(const Outcome<T>& outcome) {
  EXPECT_TRUE(outcome) << (outcome ? "" : outcome.error().detail);
  return outcome ? outcome.value() : T();
}

inline ErrorCode codeOf(const Status& status) {
  return status ? ErrorCode::kNone : status.error().code;
}
template <class T>
ErrorCode codeOf(const Outcome<T>& outcome) {
  return outcome ? ErrorCode::kNone : outcome.error().code;
}

}  // namespace nccl_ext::test
