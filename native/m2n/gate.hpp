// SPDX-License-Identifier: Apache-2.0
// What stands before and behind a stage whose bytes copy engines move, in place of its kernel (m2n/shared/transfer.hpp has the protocol).
#pragma once

#include <cuda_runtime_api.h>

#include "m2n/shared/transfer_args.hpp"

namespace nccl_ext {

// One kernel of one CTA: grants this rank's senders, then waits for the grants of all receivers. Behind it the stream may write
// to them unless args.state->failed is not 0. As launchTransfer otherwise.
cudaError_t launchGate(const TransferArgs& args, cudaStream_t stream);

// One kernel of one CTA: counts `bytes` as written, tells the receivers, waits for this rank's own arrivals and ends the stage.
cudaError_t launchSettle(const TransferArgs& args, std::uint64_t bytes, cudaStream_t stream);

// Loads both on the current device.
cudaError_t preloadGate();

}  // namespace nccl_ext
