// SPDX-License-Identifier: Apache-2.0
// Finds the memory of other ranks that a transfer touches, on a rank's worker: control blocks of all with whom it has
// business, and the destinations that it writes.
#pragma once

#include "m2n/peer_addresses.hpp"
#include "runtime/objects.hpp"

namespace nccl_ext {

struct FoundPeers {
  PeerAddresses addresses;
  std::vector<std::shared_ptr<const void>> holds;  // of memory that its kernels touch
  std::vector<Unreached> unreached;
};

// What cannot be reached is noted, or with PathChoice::kMapped refused: ERR_UNSUPPORTED. With kSendrecv only control
// blocks are looked for.
Outcome<FoundPeers> findPeers(RankState& rank, const std::vector<PeerPart>& parts, PathChoice choice);

}  // namespace nccl_ext
