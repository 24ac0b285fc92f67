// SPDX-License-Identifier: Apache-2.0
// Proves that every rank waits for exactly the ranks that send to it, and checks exactly the tensors that they hash: no
// execution waits for bytes that nobody sends.
#pragma once

#include "m2n/peer_part.hpp"

namespace nccl_ext {

// The first difference between who a rank expects and who sends to it, the same on every rank; `rank` of the record is
// the one that expects. ERR_DISAGREEMENT.
std::optional<ErrorRecord> peersProblem(const std::vector<PeerPart>& parts);

// The first group of hashes that only one side knows, likewise.
std::optional<ErrorRecord> hashGroupsProblem(const std::vector<PeerPart>& parts);

}  // namespace nccl_ext
