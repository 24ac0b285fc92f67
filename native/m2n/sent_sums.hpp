// SPDX-License-Identifier: Apache-2.0
// The sums of verified transfers between ranks that send: they travel with the bytes of the first round of their stage.
// Both halves do, for even and odd epochs, because what a graph holds cannot change with the epoch.
#pragma once

#include "m2n/device_program.hpp"
#include "m2n/sent_moves.hpp"

namespace nccl_ext {

// Where sums arrive: of each sender those for even epochs, then those for odd ones.
struct ArrivingSums {
  DeviceMemory memory;
  std::vector<std::uint64_t> at;  // by sender; 0: none
};

// Room for the sums of the ranks that send to this one. ERR_OUT_OF_MEMORY.
Outcome<ArrivingSums> allocateSums(const std::vector<PeerPart>& parts, const Routes& routes, int rank,
                                   const NcclApi& api, int device);

// Adds the sums of a pair's groups of one stage to `group`, on the rank that sends them or receives them.
void sendSums(std::vector<Sending>& group, const std::vector<PeerPart>& parts, const PeerAddresses& peers, int rank,
              const PairStream& stream, int stage);

}  // namespace nccl_ext
