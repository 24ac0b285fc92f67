// SPDX-License-Identifier: Apache-2.0
// What device code whose lanes do not talk to each other needs to run lane by lane on a host. Before any *_device.cuh.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>

#if !defined(__noinline__)
#define __noinline__
#endif
#if !defined(__forceinline__)
#define __forceinline__ inline
#endif

namespace nccl_ext {

// The lane that runs.
inline thread_local uint3 threadIdx{};

using std::max;
using std::min;

template <class Word>
Word __ldcs(const Word* at) {
  return *at;
}

inline std::uint32_t __funnelshift_r(std::uint32_t low, std::uint32_t high, std::uint32_t bits) {
  return static_cast<std::uint32_t>(((std::uint64_t{high} << 32) | low) >> (bits % 32));
}

}  // namespace nccl_ext
