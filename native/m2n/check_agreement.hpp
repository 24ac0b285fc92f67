// SPDX-License-Identifier: Apache-2.0
// Whether all ranks prepare the same transfer.
#pragma once

#include "m2n/peer_part.hpp"

namespace nccl_ext {

// ERR_DISAGREEMENT as `rank` reports it: what differs, and who holds something else than most.
std::optional<ErrorRecord> agreementProblem(const std::vector<PeerPart>& parts, int rank);

}  // namespace nccl_ext
