// SPDX-License-Identifier: Apache-2.0
// hash: sums of mixed words of what a rank sends or got, and their comparison.
// flow    clear -> hash of the sources of stage 0 -> stage 0 -> hash of those of stage 1 -> stage 1 -> hash of what arrived
//         -> compare
// roles   each CTA takes a contiguous range of words, thread t every blockDim-th of it
// edges   none of its own: stream order, and T2 (m2n/shared/transfer.hpp) between ranks
// limits  as the transfer's kernel
// failure a difference -> record; the rank stays usable. Behind a failure of the rank nothing is cleared, hashed or compared
#include <algorithm>

#include "m2n/hash.hpp"

namespace nccl_ext {
namespace {

constexpr int kThreads = 512;

__device__ bool mustSkip(DeviceStatus* status, RankWords* words) {
  return skipReason(Guard{status, words, DeviceOp::kTransfer}) != ErrorCode::kNone;
}

__global__ void __launch_bounds__(kThreads) clearKernel(const __grid_constant__ CompareArgs args) {
  __shared__ bool skip;
  if (threadIdx.x == 0) skip = mustSkip(args.status, args.words);
  __syncthreads();
  if (skip) return;
  const std::uint64_t epoch = args.state->epoch + 1;
  for (std::uint32_t i = threadIdx.x; i < args.sent.groups; i += blockDim.x) sumsOf(args.sent, epoch)[i] = 0;
  for (std::uint32_t i = threadIdx.x; i < args.received.groups; i += blockDim.x) sumsOf(args.received, epoch)[i] = 0;
}

__global__ void __launch_bounds__(kThreads) hashKernel(const __grid_constant__ HashArgs args) {
  __shared__ bool skip;
  if (threadIdx.x == 0) skip = mustSkip(args.status, args.rankWords);
  __syncthreads();
  if (skip) return;
  std::uint64_t* sums = sumsOf(args.into, args.state->epoch + static_cast<std::uint64_t>(args.begun));
  const std::uint64_t share = (args.words + gridDim.x - 1) / gridDim.x;
  const std::uint64_t first = share * blockIdx.x, end = first + share < args.words ? first + share : args.words;
  hashWords(args, first + threadIdx.x, end, blockDim.x, [sums](std::uint32_t group, std::uint64_t sum) {
    atomicAdd(reinterpret_cast<unsigned long long*>(sums + group), static_cast<unsigned long long>(sum));
  });
}

__global__ void __launch_bounds__(kThreads) compareKernel(const __grid_constant__ CompareArgs args) {
  __shared__ bool skip;
  if (threadIdx.x == 0) skip = mustSkip(args.status, args.words);
  __syncthreads();
  if (skip) return;
  const std::uint64_t epoch = args.state->epoch;
  bool same = true;
  for (std::uint32_t i = threadIdx.x; i < args.received.groups; i += blockDim.x)
    same = compareGroup(args, i, epoch) && same;
  if (!__syncthreads_and(same) && threadIdx.x == 0) discount(args);
}

}  // namespace

cudaError_t launchClearHashes(const CompareArgs& args, cudaStream_t stream) {
  clearKernel<<<1, kThreads, 0, stream>>>(args);
  return cudaGetLastError();
}

cudaError_t launchHash(const HashArgs& args, int ctas, cudaStream_t stream) {
  if (args.words == 0) return cudaSuccess;
  // A CTA for less than this many words costs more than it brings.
  constexpr std::uint64_t kFewest = 4096;
  const auto useful = static_cast<int>(std::min<std::uint64_t>((args.words + kFewest - 1) / kFewest, 1 << 16));
  hashKernel<<<std::max(1, std::min(ctas, useful)), kThreads, 0, stream>>>(args);
  return cudaGetLastError();
}

cudaError_t launchCompareHashes(const CompareArgs& args, cudaStream_t stream) {
  compareKernel<<<1, kThreads, 0, stream>>>(args);
  return cudaGetLastError();
}

cudaError_t preloadHashes() {
  cudaFuncAttributes attributes;
  cudaError_t result = cudaFuncGetAttributes(&attributes, clearKernel);
  if (result == cudaSuccess) result = cudaFuncGetAttributes(&attributes, hashKernel);
  return result == cudaSuccess ? cudaFuncGetAttributes(&attributes, compareKernel) : result;
}

}  // namespace nccl_ext
