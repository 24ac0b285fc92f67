// SPDX-License-Identifier: Apache-2.0
// transfer: one stage of a transfer on one rank, all tensors and peers in one launch.
// flow    CTA 0 asks whether it may run and grants this rank's senders -> each warp takes tiles: source -> destination, wherever that is, after that
//         receiver's grant -> the last CTA tells the receivers, then waits for this rank's own arrivals
// roles   all warps alike: tiles of the bulk part, then of the vector part
// edges   T1 (m2n/shared/transfer.hpp), T2 (m2n/shared/transfer.hpp), T3 (m2n/shared/transfer.hpp),
//         T4 (m2n/shared/transfer.hpp). Bulk stores reach the addition that counts a CTA in by wait_group, a proxy fence and the CTA's barrier
// limits  all CTAs and those of the peers resident at once (the host's SM budget); receivers addressable by this GPU
// failure a wait expires or is stopped -> record, drained, no arrivals; the epoch advances all the same
#include <algorithm>

#include "m2n/copy_bulk_device.cuh"
#include "m2n/copy_vector_device.cuh"
#include "m2n/transfer.hpp"
#include "runtime/arch.cuh"
#include "runtime/guard_device.cuh"
#include "runtime/preload.hpp"

namespace nccl_ext {
namespace {

// What a kernel has code for: the fewer, the more registers are left for it.
enum class Paths {
  kEngine,  // whole tiles by the bulk copy engine
  kAll,
  kVectors,  // no bulk part
};

constexpr int threadsOf(Paths paths) {
  return static_cast<int>(paths == Paths::kVectors ? kVectorWarps : kWarps) * 32;
}

struct SharedStorage {
  std::uint64_t loaded[kWarps][ringStages(false)];
  std::uint64_t epoch;
  bool last;
  int firstMissing;  // smallest index of a sender that did not come
  int missing;
  int end;  // WaitEnd of the waits that failed
};

// Thread 0 before the first CTA barrier.
__device__ void open(const TransferArgs& args, SharedStorage& shared) {
  shared.epoch = args.state->epoch + 1;
  shared.firstMissing = args.senderCount;
  shared.missing = 0;
  shared.end = static_cast<int>(WaitEnd::kArrived);
  if constexpr (kBulkCopy) {
    for (auto& ring : shared.loaded) {
      for (std::uint64_t& barrier : ring) ptx::mbarrierInit(barrier);
    }
  }
}

// The last warp of CTA 0, while the first ones start loads. Peers wait longest for grants: they come first.
__device__ void openStage(const TransferArgs& args, std::uint64_t epoch) {
  if (blockIdx.x != 0 || threadIdx.x / 32 != blockDim.x / 32 - 1) return;
  const int lane = threadIdx.x % 32;
  const ErrorCode reason = skipReasonOfWarp(guardOf(args));
  const bool runs = __shfl_sync(kAllLanes, lane == 0 && mayRun(args, reason) ? 1 : 0, 0) != 0;
  if (runs && args.stage == 0) {
    for (int i = lane; i < args.granteeCount; i += 32) grant(args, args.grantees[i], epoch);
  }
  if (lane == 0) admit(args, epoch, runs);
}

template <Paths kPaths>
__device__ void copyShare(const TransferArgs& args, std::uint64_t epoch, SharedStorage& shared, std::uint8_t* stages) {
  if constexpr (kBulkCopy && kPaths != Paths::kVectors) {
    const std::uint32_t warp = threadIdx.x / 32;
    if (args.work.bulk.bundleCount > 0)
      copyByBulk<kPaths == Paths::kAll>(args, epoch, {stages + warp * kRingBytes, shared.loaded[warp]});
  }
  if (kPaths != Paths::kEngine && args.work.vector.bundleCount > 0) copyByVectors(args, epoch);
}

// All threads of the last CTA: everybody's bytes of this stage are in their places, or the failure is noted.
__device__ void exchangeArrivals(const TransferArgs& args, std::uint64_t epoch, SharedStorage& shared) {
  for (int i = threadIdx.x; i < args.receiverCount; i += blockDim.x) arrive(args, args.receivers[i], epoch);
  for (int i = threadIdx.x; i < args.senderCount; i += blockDim.x) {
    const WaitEnd end = awaitArrival(args, args.senders[i], epoch, [] { return ptx::globaltimer(); });
    if (end == WaitEnd::kArrived) continue;
    atomicMin(&shared.firstMissing, i);
    atomicAdd(&shared.missing, 1);
    atomicMax(&shared.end, static_cast<int>(end));
  }
  __syncthreads();
  if (threadIdx.x != 0 || shared.missing == 0) return;
  const int peer = args.senders[shared.firstMissing];
  TransferCell& cell = args.controls[args.rank][arrivalCell(args.size, args.stage, peer)];
  failTransfer(args, static_cast<WaitEnd>(shared.end), peer, shared.missing, epoch, peek<kSystem>(cell.value));
}

template <Paths kPaths>
__global__ void __launch_bounds__(threadsOf(kPaths), 1) transferKernel(const __grid_constant__ TransferArgs args) {
  extern __shared__ __align__(128) std::uint8_t stages[];
  __shared__ SharedStorage shared;
  if (threadIdx.x == 0) open(args, shared);
  __syncthreads();
  const std::uint64_t epoch = shared.epoch;
  openStage(args, epoch);
  copyShare<kPaths>(args, epoch, shared, stages);
  __syncthreads();
  if (threadIdx.x == 0) shared.last = isLast(args);
  __syncthreads();
  if (!shared.last) return;
  if (threadIdx.x == blockDim.x - 1) closeStage(args);
  const bool failed = peek<kDevice>(args.state->failed) != 0;
  // Read before the wait for arrivals, so that nothing is read behind it.
  const std::uint64_t completed = args.state->completed;
  if (!failed) exchangeArrivals(args, epoch, shared);
  __syncthreads();
  if (threadIdx.x == 0) endStage(args, epoch, failed || shared.missing > 0, completed);
}

using Kernel = void (*)(TransferArgs);

Paths pathsOf(const TransferWork& work) {
  if (work.bulk.bundleCount == 0) return Paths::kVectors;
  return work.lanes != 0 ? Paths::kAll : Paths::kEngine;
}

Kernel kernelFor(Paths paths) {
  if (paths == Paths::kVectors) return transferKernel<Paths::kVectors>;
  return paths == Paths::kAll ? transferKernel<Paths::kAll> : transferKernel<Paths::kEngine>;
}

// Of a CTA that copies nothing, fewer: it starts sooner.
int threadsFor(const TransferWork& work) {
  return work.bulk.bundleCount + work.vector.bundleCount > 0 ? threadsOf(pathsOf(work)) : 128;
}

std::size_t sharedFor(const TransferWork& work) {
  return work.bulk.bundleCount > 0 ? kBulkSharedBytes : 0;
}

}  // namespace

cudaError_t launchTransfer(const TransferArgs& args, cudaStream_t stream) {
  kernelFor(pathsOf(args.work))<<<args.work.ctas, threadsFor(args.work), sharedFor(args.work), stream>>>(args);
  return cudaGetLastError();
}

cudaError_t preloadTransfer(bool& bulk) {
  bulk = false;
  int device = 0, most = 0;
  cudaError_t result = cudaGetDevice(&device);
  if (result == cudaSuccess) result = cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  bool compiled = true;
  const Kernel kernels[] = {kernelFor(Paths::kEngine), kernelFor(Paths::kAll), kernelFor(Paths::kVectors)};
  for (const Kernel kernel : kernels) {
    cudaFuncAttributes attributes = {};
    if (result == cudaSuccess) result = preloadKernel(kernel, attributes);
    if (result != cudaSuccess) return result;
    // What runs may have been made from PTX of an older architecture.
    compiled = compiled && std::min(attributes.binaryVersion, attributes.ptxVersion) >= 90 &&
               attributes.sharedSizeBytes + kBulkSharedBytes <= static_cast<std::size_t>(most);
  }
  for (const Kernel kernel : kernels) {
    if (!compiled || result != cudaSuccess) return result;
    result =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(kBulkSharedBytes));
  }
  bulk = result == cudaSuccess;
  return result;
}

}  // namespace nccl_ext
