// SPDX-License-Identifier: Apache-2.0
// fill, copy, note: memory of one rank, unless the rank has failed before.
// flow    the first warp of each CTA asks whether the operation may run -> all threads move 16-byte vectors, grid-stride
//         -> CTA 0 moves what is left at both ends
// roles   one kind of thread
// edges   none: nothing is waited for, and stream order makes the result visible
// limits  a failure elsewhere while it runs may find it half done      failure  skipped -> a record; memory untouched
#include <algorithm>

#include "runtime/guard_device.cuh"
#include "runtime/moves.hpp"
#include "runtime/preload.hpp"

namespace nccl_ext {
namespace {

constexpr int kThreads = 1024;
constexpr std::size_t kVectorBytes = sizeof(uint4);
// Vectors per thread: enough loads in flight to hide memory, few enough that small copies use many SMs.
constexpr std::size_t kVectorsPerThread = 4;
constexpr std::size_t kBytesPerCta = kThreads * kVectorsPerThread * kVectorBytes;
// Each asks the host's memory, which answers one after the other: 512 CTAs waited 1.1 ms for their answers on one H200. Without
// clusters, whose CTAs could share one answer: they start only where a GPC has room for all of them beside kernels that wait.
constexpr std::size_t kMaxCtas = 32;

struct MoveArgs {
  Guard guard;
  std::uint8_t* to;
  const std::uint8_t* from;  // null: a fill
  std::size_t bytes;
  std::uint32_t pattern;  // the byte of a fill, four times
};

// The same answer for all threads of a CTA; the first CTA tells the host.
__device__ bool mustSkip(const Guard& guard, Skipped what) {
  __shared__ ErrorCode reason;
  if (threadIdx.x < 32) {
    const ErrorCode seen = skipReasonOfWarp(guard);
    if (threadIdx.x == 0) reason = seen;
    if (threadIdx.x == 0 && seen != ErrorCode::kNone && blockIdx.x == 0) reportSkipped(guard, seen, what);
  }
  __syncthreads();
  return reason != ErrorCode::kNone;
}

__device__ std::size_t threadOfGrid() {
  return static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

// Bytes before the first whole vector of `to`.
__device__ std::size_t headOf(const MoveArgs& args) {
  const std::size_t over = reinterpret_cast<std::uintptr_t>(args.to) % kVectorBytes;
  const std::size_t head = over == 0 ? 0 : kVectorBytes - over;
  return head < args.bytes ? head : args.bytes;
}

// Both ends by the threads of the first CTA, which are more than 2 x 15.
template <class Store>
__device__ void eachLooseByte(std::size_t head, std::size_t tail, std::size_t bytes, Store store) {
  if (blockIdx.x != 0) return;
  const std::size_t thread = threadIdx.x;
  if (thread < head) store(thread);
  if (tail + thread < bytes) store(tail + thread);
}

__global__ void __launch_bounds__(kThreads) fillKernel(const __grid_constant__ MoveArgs args) {
  if (mustSkip(args.guard, Skipped::kUntouched)) return;
  const std::size_t head = headOf(args), vectors = (args.bytes - head) / kVectorBytes;
  const uint4 value = {args.pattern, args.pattern, args.pattern, args.pattern};
  auto* to = reinterpret_cast<uint4*>(args.to + head);
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t i = threadOfGrid(); i < vectors; i += stride) to[i] = value;
  eachLooseByte(head, head + vectors * kVectorBytes, args.bytes,
                [&](std::size_t at) { args.to[at] = static_cast<std::uint8_t>(args.pattern); });
}

__global__ void __launch_bounds__(kThreads) copyKernel(const __grid_constant__ MoveArgs args) {
  if (mustSkip(args.guard, Skipped::kUntouched)) return;
  const std::size_t head = headOf(args);
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  if (reinterpret_cast<std::uintptr_t>(args.from + head) % kVectorBytes != 0) {
    // The two sides are aligned differently: byte by byte.
    for (std::size_t i = threadOfGrid(); i < args.bytes; i += stride) args.to[i] = args.from[i];
    return;
  }
  const std::size_t vectors = (args.bytes - head) / kVectorBytes;
  auto* to = reinterpret_cast<uint4*>(args.to + head);
  const auto* from = reinterpret_cast<const uint4*>(args.from + head);
  std::size_t i = threadOfGrid();
  for (; i + (kVectorsPerThread - 1) * stride < vectors; i += kVectorsPerThread * stride) {
    uint4 held[kVectorsPerThread];
#pragma unroll
    for (std::size_t k = 0; k < kVectorsPerThread; k++) held[k] = from[i + k * stride];
#pragma unroll
    for (std::size_t k = 0; k < kVectorsPerThread; k++) to[i + k * stride] = held[k];
  }
  for (; i < vectors; i += stride) to[i] = from[i];
  eachLooseByte(head, head + vectors * kVectorBytes, args.bytes, [&](std::size_t at) { args.to[at] = args.from[at]; });
}

__global__ void noteKernel(const __grid_constant__ Guard guard) {
  (void)mustSkip(guard, Skipped::kRanAllTheSame);
}

static_assert(kThreads >= 2 * static_cast<int>(kVectorBytes), "one CTA holds a thread for each loose byte");

int gridFor(std::size_t bytes) {
  return static_cast<int>(std::min(kMaxCtas, (bytes + kBytesPerCta - 1) / kBytesPerCta));
}

}  // namespace

cudaError_t launchFill(const Guard& guard, void* to, int value, std::size_t bytes, cudaStream_t stream) {
  const std::uint32_t pattern = static_cast<std::uint32_t>(value & 255) * 0x0101'0101u;
  fillKernel<<<gridFor(bytes), kThreads, 0, stream>>>({guard, static_cast<std::uint8_t*>(to), nullptr, bytes, pattern});
  return cudaGetLastError();
}

cudaError_t launchCopy(const Guard& guard, void* to, const void* from, std::size_t bytes, cudaStream_t stream) {
  copyKernel<<<gridFor(bytes), kThreads, 0, stream>>>(
      {guard, static_cast<std::uint8_t*>(to), static_cast<const std::uint8_t*>(from), bytes, 0});
  return cudaGetLastError();
}

cudaError_t launchNote(const Guard& guard, cudaStream_t stream) {
  noteKernel<<<1, 32, 0, stream>>>(guard);
  return cudaGetLastError();
}

cudaError_t preloadMoves() {
  return preloadKernels(fillKernel, copyKernel, noteKernel);
}

}  // namespace nccl_ext
