// SPDX-License-Identifier: Apache-2.0
// What the parts of the fake CUDA runtime share: how a stream keeps its work, and what is counted and reported.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "tests/fake/fake_cudart.hpp"
#include "tests/fake/fake_stream.hpp"

namespace nccl_ext::fake {

using Work = std::function<void()>;

// Streams, events, graphs and allocations that are alive.
inline std::atomic<int> live{0};

// A call's result, kept for cudaGetLastError when it is an error.
cudaError_t answer(cudaError_t result);

// Brings what was copied from pageable memory to the device.
void finishCopies();

}  // namespace nccl_ext::fake

struct CUstream_st : nccl_ext::fake::StreamFront {
  std::mutex mutex;
  std::condition_variable wake;
  std::deque<nccl_ext::fake::Work> queue;
  bool ending = false;
  std::thread thread;
};
