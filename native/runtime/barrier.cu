// SPDX-License-Identifier: Apache-2.0
// barrier: holds a stream until every rank's stream has come to its own barrier.
// flow    thread p announces this rank to peer p, p + threads, ... -> each thread waits for its peers
//         -> thread 0 stores the epoch
// roles   one CTA; thread p serves peers p, p + threads, ...
// edges   B1 (runtime/shared/barrier.hpp): stream order and the CTA barrier collect before the release; the CTA barrier
//         after the acquire spreads to the kernel's end, which orders the stream's next kernel
// limits  all peers in one NVLink domain (the host checks)
// failure B1 expires or is stopped -> record, drained, epoch advances
#include <algorithm>

#include "runtime/barrier.hpp"
#include "runtime/preload.hpp"
#include "runtime/ptx.cuh"

namespace nccl_ext {
namespace {

// One CTA: a barrier is latency, and fewer CTAs leave more SMs to peers on the same GPU.
constexpr int kMaxThreads = 1024;

struct SharedStorage {
  std::uint64_t epoch;
  int firstMissing;  // smallest peer that did not come; size when all did
  int missing;
  int end;  // WaitEnd of the waits that failed; kStopped wins over kExpired
};

__global__ void __launch_bounds__(kMaxThreads) barrierKernel(const __grid_constant__ BarrierArgs args) {
  __shared__ SharedStorage shared;
  if (threadIdx.x == 0) {
    shared = {*args.epoch + 1, args.size, 0, static_cast<int>(WaitEnd::kArrived)};
    // An earlier kernel of this rank failed: this one announces nothing and waits for nobody.
    if (peek<kSystem>(args.words->drained) != 0) shared.end = static_cast<int>(WaitEnd::kStopped);
  }
  __syncthreads();
  const std::uint64_t epoch = shared.epoch;
  const bool drained = shared.end != static_cast<int>(WaitEnd::kArrived);
  __syncthreads();
  if (drained) {
    if (threadIdx.x == 0) {
      const Guard guard = guardOf(args);
      reportSkipped(guard, skipReason(guard), Skipped::kUntouched);
      *args.epoch = epoch;
    }
    return;
  }

  for (int peer = threadIdx.x; peer < args.size; peer += blockDim.x) announce(args, peer, epoch);
  const std::uint64_t deadline = ptx::globaltimer() + args.timeoutNs;
  for (int peer = threadIdx.x; peer < args.size; peer += blockDim.x) {
    const WaitEnd end = await(args, peer, epoch, deadline, [] { return ptx::globaltimer(); });
    if (end == WaitEnd::kArrived) continue;
    atomicMin(&shared.firstMissing, peer);
    atomicAdd(&shared.missing, 1);
    atomicMax(&shared.end, static_cast<int>(end));
  }
  __syncthreads();

  if (threadIdx.x != 0) return;
  if (shared.missing > 0) {
    // The record first: whoever sees that the rank has failed finds out why.
    report(*args.status, failureOf(args, static_cast<WaitEnd>(shared.end), shared.firstMissing, shared.missing, epoch));
    publish<kSystem>(args.words->drained, 1);
  }
  *args.epoch = epoch;
}

}  // namespace

cudaError_t launchBarrier(const BarrierArgs& args, cudaStream_t stream) {
  const int threads = std::min(kMaxThreads, (args.size + 31) / 32 * 32);
  barrierKernel<<<1, threads, 0, stream>>>(args);
  return cudaGetLastError();
}

cudaError_t preloadBarrier() {
  return preloadKernels(barrierKernel);
}

}  // namespace nccl_ext
