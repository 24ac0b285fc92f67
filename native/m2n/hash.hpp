// SPDX-License-Identifier: Apache-2.0
// Puts the hashes of a verified transfer on a stream (m2n/shared/hash.hpp says what they are). None of these kernels waits.
#pragma once

#include <cuda_runtime_api.h>

#include "m2n/shared/hash_check.hpp"

namespace nccl_ext {

// Before the first stage of an execution: makes the sums of its epoch zero, and the counters of tiles.
cudaError_t launchClearHashes(const CompareArgs& args, cudaStream_t stream);

// Adds the words of `args.moves` to their sums, with `ctas` CTAs at most, each of which holds an SM.
cudaError_t launchHash(const HashArgs& args, int ctas, cudaStream_t stream);

// After the last stage: ERR_VERIFY in the box for the first group that differs.
cudaError_t launchCompareHashes(const CompareArgs& args, cudaStream_t stream);

// Loads the kernels on the current device, so that no launch has to load code while a peer spins.
cudaError_t preloadHashes();

}  // namespace nccl_ext
