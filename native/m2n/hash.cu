// SPDX-License-Identifier: Apache-2.0
// hash: sums of mixed words of what a rank sends or got, and their comparison.
// flow    clear -> hash of the sources of stage 0 -> stage 0 -> hash of those of stage 1 -> stage 1 -> hash of what arrived
//         -> compare
// roles   all warps alike: each takes tiles and keeps the sum of their group until a tile of another group comes
// edges   none of its own: stream order, and T2 (m2n/shared/transfer.hpp) between ranks
// limits  waits for nobody; a CTA holds an SM
// failure a difference -> record; the rank stays usable. Behind a failure of the rank nothing is cleared, hashed or compared
#include <algorithm>

#include "m2n/hash.hpp"
#include "m2n/hash_cast_device.cuh"
#include "m2n/hash_walk_device.cuh"
#include "runtime/guard_device.cuh"
#include "runtime/preload.hpp"

namespace nccl_ext {
namespace {

constexpr int kThreads = 512;
constexpr int kHashThreads = kHashWarps * 32;
constexpr std::uint32_t kNoGroup = 0xffff'ffff;

__device__ bool mustSkip(DeviceStatus* status, RankWords* words) {
  return skipReason(Guard{status, words, DeviceOp::kTransfer}) != ErrorCode::kNone;
}

__global__ void __launch_bounds__(kThreads) clearKernel(const __grid_constant__ CompareArgs args) {
  __shared__ bool skip;
  if (threadIdx.x == 0) skip = mustSkip(args.status, args.words);
  __syncthreads();
  if (skip) return;
  const std::uint64_t epoch = args.state->epoch + 1;
  if (threadIdx.x < kHashes) args.taken[threadIdx.x].tiles = 0;
  for (std::uint32_t i = threadIdx.x; i < args.sent.groups; i += blockDim.x) sumsOf(args.sent, epoch)[i] = 0;
  for (std::uint32_t i = threadIdx.x; i < args.received.groups; i += blockDim.x) sumsOf(args.received, epoch)[i] = 0;
}

// All lanes of a warp.
__device__ void addSum(std::uint64_t* sums, std::uint32_t group, std::uint64_t sum) {
  if (group == kNoGroup) return;
#pragma unroll
  for (int lanes = 16; lanes > 0; lanes /= 2) sum += __shfl_xor_sync(0xffff'ffff, sum, lanes);
  if (threadIdx.x % 32 == 0)
    atomicAdd(reinterpret_cast<unsigned long long*>(sums + group), static_cast<unsigned long long>(sum));
}

__global__ void __launch_bounds__(kHashThreads, 1) hashKernel(const __grid_constant__ HashArgs args) {
  __shared__ bool skip;
  if (threadIdx.x < 32) {
    const ErrorCode reason = skipReasonOfWarp(Guard{args.status, args.rankWords, DeviceOp::kTransfer});
    if (threadIdx.x == 0) skip = reason != ErrorCode::kNone;
  }
  __syncthreads();
  if (skip) return;
  std::uint64_t* sums = sumsOf(args.into, args.state->epoch + static_cast<std::uint64_t>(args.begun));
  std::uint32_t group = kNoGroup;
  std::uint64_t sum = 0;
  for (HashWalk walk(args); walk.more();) {
    const HashTile tile = walk.take();
    const HashMove& move = args.moves[tile.move];
    if (move.group != group) {
      addSum(sums, group, sum);
      group = move.group;
      sum = 0;
    }
    const HashSpan span = hashSpanOf(move, tile.tile);
    if (move.path == HashPath::kCast)
      sum += sumCast(move, span);
    else
      sumRuns(move, span, sum);
    __syncwarp();
  }
  addSum(sums, group, sum);
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
  if (args.tiles == 0) return cudaSuccess;
  // Tiles of a CTA that is worth its start, and its turn at the host's words.
  constexpr std::uint32_t kFewest = 4 * kHashWarps;
  const auto useful = static_cast<int>(std::min<std::uint32_t>((args.tiles + kFewest - 1) / kFewest, 1 << 16));
  hashKernel<<<std::max(1, std::min(ctas, useful)), kHashThreads, 0, stream>>>(args);
  return cudaGetLastError();
}

cudaError_t launchCompareHashes(const CompareArgs& args, cudaStream_t stream) {
  compareKernel<<<1, kThreads, 0, stream>>>(args);
  return cudaGetLastError();
}

cudaError_t preloadHashes() {
  return preloadKernels(clearKernel, hashKernel, compareKernel);
}

}  // namespace nccl_ext
