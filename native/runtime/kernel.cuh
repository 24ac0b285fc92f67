// SPDX-License-Identifier: Apache-2.0
// For kernels of your own that communicate through windows: waits with a deadline, and errors that reach JavaScript.
//
// Compile with `nvcc -cubin -arch=sm_90a -std=c++17 -I node_modules/@nccl-ext/cuda13/include`, load the file with
// `communicator.loadModule`, and let the launch fill the KernelGuard.
//
//   #include <nccl_ext/kernel.cuh>
//
//   // Every rank stores a number into every peer's window. Layout: numbers[2][size], then flags[size], 64 bits each.
//   extern "C" __global__ void shout(std::uint64_t* const* windows, std::uint64_t epoch, nccl_ext::KernelGuard guard) {
//     using namespace nccl_ext;
//     const int peer = threadIdx.x;  // one CTA with a thread per rank
//     if (peer >= guard.size || mustEnd(guard)) return;
//     // A peer that is one epoch behind still reads the other half; none is two behind, because it told us epoch - 1.
//     const std::uint64_t half = epoch % 2 * guard.size, flags = 2 * guard.size;
//     std::uint64_t* const own = windows[guard.rank];
//     windows[peer][half + guard.rank] = epoch * 1000 + guard.rank;
//     publish<kSystem>(windows[peer][flags + guard.rank], epoch);     // E1 release, farthest reader: the peer's GPU
//     if (!wait(guard, own[flags + peer], epoch, peer)) return;       // E1 acquire
//     const std::uint64_t expected = epoch * 1000 + peer, seen = own[half + peer];
//     if (seen != expected) report(guard, ErrorCode::kKernel, peer, expected, seen);
//   }
//
// Rules
// R1 A release pairs with the acquire that reads its word: publish<kSystem>(flag, n) with wait(guard, flag, n, peer) or
//    observe<kSystem>(flag). It carries what this thread wrote, and what reached this thread before: end the writes of a
//    CTA with __syncthreads(), then let one thread publish; after a wait, __syncthreads() spreads to the CTA.
// R2 Scope is the farthest reader's: kSystem for a peer, even on the same GPU, because you cannot know; kDevice only
//    between CTAs of one kernel.
// R3 A flag has one writer and counts up (free-running, compared on the circle); nobody resets it, and its next value is
//    published only after the reader has shown that it is done with the last one. A tagged word, epoch << 32 | count,
//    is such a flag too: wait for epoch << 32 and take the count from Arrival::seen.
// R4 Data that a peer writes while the kernel runs is never read through __ldg or const __restrict__.
// R5 A CTA that waits needs its peer's CTA to run: at most `device.smBudget` SMs of CTAs per rank, over all its streams.
// R6 A wait that fails has left its record. Reach your CTA barriers all the same, skip the rest, return; never trap.
#pragma once

#include "runtime/ptx.cuh"
#include "runtime/shared/guard.hpp"

namespace nccl_ext {

// waitFor (guard.hpp) on the GPU's clock: the deadline is the communicator's timeout, from this call on.
__device__ inline Arrival wait(const KernelGuard& guard, std::uint64_t& flag, std::uint64_t value, int peer) {
  return waitFor(guard, flag, value, peer, [] { return ptx::globaltimer(); });
}

}  // namespace nccl_ext
