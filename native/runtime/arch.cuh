// SPDX-License-Identifier: Apache-2.0
// What the GPU that code is compiled for can do. On the host everything is false.
#pragma once

namespace nccl_ext {

#if defined(__CUDA_ARCH__)
inline constexpr int kArch = __CUDA_ARCH__;
#else
inline constexpr int kArch = 0;
#endif

// cp.async.bulk: copies between global and shared memory that a thread only starts.
inline constexpr bool kBulkCopy = kArch >= 900;

}  // namespace nccl_ext
