// SPDX-License-Identifier: Apache-2.0
// Puts one barrier on a stream (runtime/shared/barrier.hpp has the protocol).
#pragma once

#include <cuda_runtime_api.h>

#include "runtime/shared/barrier.hpp"

namespace nccl_ext {

// Needs args.size >= 1 and the memory of `args` alive until the kernel is done. Returns what the launch returned.
cudaError_t launchBarrier(const BarrierArgs& args, cudaStream_t stream);

// Loads the kernel on the current device, so that no launch has to load code while a peer spins.
cudaError_t preloadBarrier();

}  // namespace nccl_ext
