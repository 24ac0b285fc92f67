// SPDX-License-Identifier: Apache-2.0
// CUDA's words for a compiler that knows none of them. CMake includes it before everything else in a kernel's file; launches and
// shared variables are rewritten before (rewrite.mjs).
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <type_traits>

#include "tests/simt/collectives.hpp"
#include "tests/simt/cudart.hpp"
#include "tests/simt/launch.hpp"
#include "tests/simt/memory.hpp"

#undef __global__
#undef __device__
#undef __host__
#undef __launch_bounds__
#undef __grid_constant__
#undef __noinline__
#undef __forceinline__
#define __global__
#define __device__
#define __host__
#define __launch_bounds__(...)
#define __grid_constant__
// Nothing rather than an attribute, which libstdc++ spells with this word.
#define __noinline__
#define __forceinline__ inline

// Of the thread that runs.
extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;

template <class A, class B>
constexpr std::common_type_t<A, B> min(A a, B b) {
  using Value = std::common_type_t<A, B>;
  return static_cast<Value>(b) < static_cast<Value>(a) ? static_cast<Value>(b) : static_cast<Value>(a);
}
template <class A, class B>
constexpr std::common_type_t<A, B> max(A a, B b) {
  using Value = std::common_type_t<A, B>;
  return static_cast<Value>(a) < static_cast<Value>(b) ? static_cast<Value>(b) : static_cast<Value>(a);
}

inline int __popc(unsigned value) {
  return std::popcount(value);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned bits) {
  return static_cast<unsigned>((std::uint64_t{high} << 32 | low) >> (bits % 32));
}

using SimtSite = nccl_ext::simt::Site;

inline void __syncthreads(SimtSite site = SimtSite::current()) {
  nccl_ext::simt::meetCta("__syncthreads", site, 0);
}
inline int __syncthreads_and(int holds, SimtSite site = SimtSite::current()) {
  return nccl_ext::simt::meetCta("__syncthreads_and", site, holds != 0)[0] != 0;
}
inline int __syncthreads_or(int holds, SimtSite site = SimtSite::current()) {
  return nccl_ext::simt::meetCta("__syncthreads_or", site, holds != 0)[1] != 0;
}
inline void __syncwarp(unsigned mask = 0xffff'ffff, SimtSite site = SimtSite::current()) {
  nccl_ext::simt::meet("__syncwarp", mask, site, 0);
}

template <class Value>
Value __shfl_sync(unsigned mask, Value value, int from, SimtSite site = SimtSite::current()) {
  const auto lane = static_cast<unsigned>(from) % 32;
  return nccl_ext::simt::valueOf<Value>(
      nccl_ext::simt::shuffle("__shfl_sync", mask, lane, site, nccl_ext::simt::bitsOf(value)));
}
template <class Value>
Value __shfl_xor_sync(unsigned mask, Value value, int with, SimtSite site = SimtSite::current()) {
  const unsigned lane = nccl_ext::simt::ownLane() ^ static_cast<unsigned>(with);
  return nccl_ext::simt::valueOf<Value>(
      nccl_ext::simt::shuffle("__shfl_xor_sync", mask, lane % 32, site, nccl_ext::simt::bitsOf(value)));
}

inline unsigned __ballot_sync(unsigned mask, int holds, SimtSite site = SimtSite::current()) {
  const auto& brought = nccl_ext::simt::meet("__ballot_sync", mask, site, holds != 0);
  unsigned lanes = 0;
  for (unsigned lane = 0; lane < 32; lane++) lanes |= static_cast<unsigned>(brought[lane]) << lane;
  return lanes;
}
inline int __all_sync(unsigned mask, int holds, SimtSite site = SimtSite::current()) {
  const auto& brought = nccl_ext::simt::meet("__all_sync", mask, site, holds == 0);
  return std::all_of(brought.begin(), brought.end(), [](std::uint64_t fails) { return fails == 0; });
}
inline int __any_sync(unsigned mask, int holds, SimtSite site = SimtSite::current()) {
  const auto& brought = nccl_ext::simt::meet("__any_sync", mask, site, holds != 0);
  return std::any_of(brought.begin(), brought.end(), [](std::uint64_t one) { return one != 0; });
}
inline unsigned __reduce_add_sync(unsigned mask, unsigned value, SimtSite site = SimtSite::current()) {
  unsigned sum = 0;
  for (const std::uint64_t one : nccl_ext::simt::meet("__reduce_add_sync", mask, site, value))
    sum += static_cast<unsigned>(one);
  return sum;
}
