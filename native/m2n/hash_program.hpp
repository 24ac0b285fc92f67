// SPDX-License-Identifier: Apache-2.0
// What a verified transfer hashes and compares on one rank, as its kernels read it.
#pragma once

#include "m2n/peer_addresses.hpp"
#include "m2n/peer_part.hpp"
#include "m2n/shared/hash.hpp"

namespace nccl_ext {

// Moves of a sorted table that hash together, in the table's order; `groups` are all of the table's.
struct HashList {
  std::vector<HashMove> moves;
  std::uint64_t words = 0;
};

// What this rank hashes before stage `stage`: the sources of its sends, groups as hashGroupsOf numbers them.
HashList sentHashes(const PreparePart& part, int stage);

// What it hashes at the end: the destinations of what it received.
HashList receivedHashes(const PreparePart& part);

// For each group that this rank received: where its sender keeps the sum, or where it arrives. hashGroupsProblem has found
// nothing.
std::vector<HashCheck> checksOf(const PreparePart& part, const std::vector<PeerPart>& parts,
                                const PeerAddresses& peers);

// Bytes of a control block of a world of `size` ranks before the sums, and with those of `groups` sent groups.
std::size_t sumsOffset(int size);
std::size_t blockBytes(int size, std::size_t groups);

}  // namespace nccl_ext
