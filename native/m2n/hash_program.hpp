// SPDX-License-Identifier: Apache-2.0
// What a verified transfer hashes and compares on one rank, as its kernels read it.
#pragma once

#include "m2n/hash_tiles.hpp"
#include "m2n/peer_addresses.hpp"
#include "m2n/peer_part.hpp"
#include "m2n/shared/hash_check.hpp"

namespace nccl_ext {

// What this rank hashes before stage `stage`: the sources of its sends, groups as hashGroupsOf numbers them. `sms`: that the hash
// may hold.
HashList sentHashes(const PreparePart& part, int stage, int sms);

// What it hashes at the end: the destinations of what it received.
HashList receivedHashes(const PreparePart& part, int sms);

// For each group that this rank received: where its sender keeps the sum, or where it arrives. hashGroupsProblem has found
// nothing.
std::vector<HashCheck> checksOf(const PreparePart& part, const std::vector<PeerPart>& parts,
                                const PeerAddresses& peers);

// Bytes of a control block of a world of `size` ranks before the sums, and with those of `groups` sent groups.
std::size_t sumsOffset(int size);
std::size_t blockBytes(int size, std::size_t groups);

}  // namespace nccl_ext
