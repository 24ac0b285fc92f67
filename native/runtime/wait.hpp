// SPDX-License-Identifier: Apache-2.0
// An unbounded wait on a condition variable. std::condition_variable::wait got a new symbol in GCC 12 (GLIBCXX_3.4.30),
// which RHEL 9 lacks; waiting with a time limit is inline and asks for nothing newer than GCC 11.
#pragma once

#include <chrono>
#include <condition_variable>

namespace nccl_ext {

// Returns when `predicate` holds. `lock` is held then, and whenever `predicate` runs.
template <class Predicate>
void waitUntilTrue(std::condition_variable& condition, std::unique_lock<std::mutex>& lock, Predicate predicate) {
  while (!condition.wait_for(lock, std::chrono::minutes(1), predicate)) {
  }
}

}  // namespace nccl_ext
