// SPDX-License-Identifier: Apache-2.0
// Proves that a transfer never writes what it still reads, and never writes one byte for two tensors.
//
// Tensors may share a buffer, even with rows of one between rows of the other. So extents are compared first, which settles
// nearly every case; only for tensors whose extents meet do ranks send the moves, which are compared run by run.
#pragma once

#include "m2n/peer_part.hpp"

namespace nccl_ext {

// A tensor of this rank, from where to where it is read in stage 0 or written by anybody. Stage 1 reads what was written.
struct Touched {
  std::int32_t tensor = 0;
  bool writes = false;
  std::int64_t start = 0;  // addresses
  std::int64_t end = 0;
};

// Two of them whose extents meet, one of which is written: the one that starts first comes first.
struct Contest {
  Touched first;
  Touched second;
};

std::vector<Contest> contestsOn(const PreparePart& part, const std::vector<PeerPart>& parts);

// Destination tensors of this rank whose moves it needs to see, ascending.
std::vector<std::int32_t> contestedTensors(const std::vector<Contest>& contests);

// The moves with which `part`'s rank writes what its peers contest; `asked` by rank. For overlapProblem of every rank.
Bytes contestedMoves(const PreparePart& part, const std::vector<std::vector<std::int32_t>>& asked);

// The first contest that has a common byte. `moves` by rank, as contestedMoves gives them. ERR_OVERLAP.
std::optional<ErrorRecord> overlapProblem(const PreparePart& part, const std::vector<Contest>& contests,
                                          const std::vector<Bytes>& moves);

}  // namespace nccl_ext
