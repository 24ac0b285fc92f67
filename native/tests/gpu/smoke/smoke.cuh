// SPDX-License-Identifier: Apache-2.0
// What both smoke kernels begin and end with, as a user would write it on nccl_ext/kernel.cuh.
#pragma once

#include <nccl_ext/kernel.cuh>

namespace smoke {

inline constexpr int kThreads = 256;
inline constexpr int kWarps = kThreads / 32;

// Counts launches on the device, so that a graph needs no new parameter for each of its launches.
struct Epoch {
  std::uint64_t done;  // launches that have ended
  std::uint64_t left;  // CTAs of the running launch that have ended
};

// What a CTA knows, in shared memory.
struct Visit {
  std::uint64_t epoch;
  int ended;  // not 0: the rank has failed; skip what depends on peers
};

// Whether this CTA may work. The CTA is converged; so is the answer.
__device__ inline bool enter(Visit& visit, const Epoch& epoch, const nccl_ext::KernelGuard& guard) {
  if (threadIdx.x == 0) {
    visit.epoch = epoch.done + 1;
    visit.ended = nccl_ext::mustEnd(guard);
  }
  __syncthreads();
  const bool ended = visit.ended != 0;
  __syncthreads();  // before a thread that is fast sets it
  return !ended;
}

// The last CTA to come ends the launch, however it went. Every CTA of the grid calls it, converged.
__device__ inline void leave(Epoch& epoch) {
  __syncthreads();
  if (threadIdx.x != 0) return;
  __threadfence();  // this CTA has read `done` before it counts itself
  if (atomicAdd(reinterpret_cast<unsigned long long*>(&epoch.left), 1ull) != gridDim.x - 1) return;
  epoch.left = 0;
  epoch.done++;
}

// Waits with all threads of the CTA for flags [peer][perPeer], `peers` of them named by `rankOf`; whether all came.
template <class RankOf>
__device__ inline bool waitAll(Visit& visit, const nccl_ext::KernelGuard& guard, std::uint64_t* flags, int peers,
                               int perPeer, RankOf rankOf) {
  for (int i = threadIdx.x; i < peers * perPeer; i += blockDim.x) {
    const int peer = rankOf(i / perPeer);
    if (!nccl_ext::wait(guard, flags[peer * perPeer + i % perPeer], visit.epoch, peer)) atomicOr(&visit.ended, 1);
  }
  __syncthreads();
  return visit.ended == 0;
}

// Writes one byte behind the end of memory of `bytes` bytes, to see that a checker finds it. 0: does nothing.
__device__ inline void plant(std::uint8_t* scratch, std::uint64_t bytes) {
  if (bytes != 0 && blockIdx.x == 0 && threadIdx.x == 0) scratch[bytes] = 1;
}

}  // namespace smoke
