// SPDX-License-Identifier: Apache-2.0
// Copies and fills of this rank's memory as kernels, which leave it alone behind a failure (shared/guarded.hpp).
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "runtime/shared/guarded.hpp"

namespace nccl_ext {

// Each returns what the launch returned. `bytes` is at least 1; any alignment. What the guard points to must live until
// the kernel is done.
cudaError_t launchFill(const Guard& guard, void* to, int value, std::size_t bytes, cudaStream_t stream);
// Either side may be pinned memory of the host. The ranges do not overlap.
cudaError_t launchCopy(const Guard& guard, void* to, const void* from, std::size_t bytes, cudaStream_t stream);
// Behind an operation of the driver's: tells when it has run behind a failure.
cudaError_t launchNote(const Guard& guard, cudaStream_t stream);

// Loads the kernels on the current device, so that no launch has to load code while a peer spins.
cudaError_t preloadMoves();

}  // namespace nccl_ext
