// SPDX-License-Identifier: Apache-2.0
// The barrier kernel's protocol on a host thread: the same shared code, one thread for all peers.
#include <chrono>
#include <thread>

#include "runtime/barrier.hpp"
#include "tests/fake/fake_cudart.hpp"

namespace nccl_ext {
namespace {

// Asked by who waits: cores are few, and the peer needs one.
std::uint64_t nanoseconds() {
  std::this_thread::sleep_for(std::chrono::microseconds(20));
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
          .count());
}

void runBarrier(const BarrierArgs& args) {
  const std::uint64_t epoch = ++*args.epoch;
  if (peek<kSystem>(args.words->drained) != 0) {
    const Guard guard = guardOf(args);
    return reportSkipped(guard, skipReason(guard), Skipped::kUntouched);
  }
  for (int peer = 0; peer < args.size; peer++) announce(args, peer, epoch);
  const std::uint64_t deadline = nanoseconds() + args.timeoutNs;
  int first = args.size, missing = 0;
  WaitEnd worst = WaitEnd::kArrived;
  for (int peer = 0; peer < args.size; peer++) {
    const WaitEnd end = await(args, peer, epoch, deadline, nanoseconds);
    if (end == WaitEnd::kArrived) continue;
    first = std::min(first, peer);
    missing++;
    worst = std::max(worst, end);
  }
  if (missing == 0) return;
  report(*args.status, failureOf(args, worst, first, missing, epoch));
  publish<kSystem>(args.words->drained, 1);
}

}  // namespace

cudaError_t launchBarrier(const BarrierArgs& args, cudaStream_t stream) {
  return fake::launch(stream, [args] { runBarrier(args); });
}

cudaError_t preloadBarrier() {
  return cudaSuccess;
}

}  // namespace nccl_ext
