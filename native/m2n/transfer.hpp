// SPDX-License-Identifier: Apache-2.0
// Puts one stage of a transfer on a stream (m2n/shared/transfer.hpp has the protocol).
#pragma once

#include <cuda_runtime_api.h>

#include "m2n/shared/transfer_args.hpp"

namespace nccl_ext {

// One kernel of args.work.ctas CTAs, one per SM, that all must be able to run at once with those of the peers. Stage 0 of a
// rank comes before its stage 1, and a transfer's executions on a rank one after the other, whatever streams they are on. The
// memory of `args` lives until the kernel is done. Capturable. Returns what the launch returned.
cudaError_t launchTransfer(const TransferArgs& args, cudaStream_t stream);

// Loads the kernel on the current device and lets it use the shared memory it needs, so that no launch has to do either while
// a peer spins. `bulk` says whether this device has a bulk copy engine that the kernel was compiled for: StageLimits::bulk.
cudaError_t preloadTransfer(bool& bulk);

}  // namespace nccl_ext
