// SPDX-License-Identifier: Apache-2.0
// Proves that every move of a rank stays inside the buffers that the tensors were bound to.
#pragma once

#include "m2n/peer_part.hpp"

namespace nccl_ext {

// The first move that `part`'s rank sends or verifies and that leaves a buffer, its own or a peer's.
// ERR_INVALID_ARGUMENT: a transform that nobody knows, a tensor that nobody bound. ERR_OUT_OF_BOUNDS.
std::optional<ErrorRecord> boundsProblem(const PreparePart& part, const std::vector<PeerPart>& parts);

}  // namespace nccl_ext
