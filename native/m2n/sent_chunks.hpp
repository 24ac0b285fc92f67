// SPDX-License-Identifier: Apache-2.0
// The streams of bytes that a rank sends and receives, and the moves between memory and the chunk of a round.
#pragma once

#include "m2n/device_program.hpp"
#include "m2n/sent_moves.hpp"

namespace nccl_ext {

// What all ranks know about what is sent.
struct SentPlan {
  std::vector<SentMove> arriving[2];     // by stage: moves to this rank, sender after sender
  std::vector<std::int32_t> senders[2];  // of each of them
  std::vector<PairStream> streams[2];    // by stage: those of this rank
};

// `moves` by sender.
SentPlan sentPlanOf(const std::vector<std::vector<SentMove>>& moves, int rank, const StagingLimits& limits);

// A move, and where it begins in the stream of its pair.
struct PlacedMove {
  Move move;
  std::uint64_t at = 0;
};

// The part of a pair's stream that a rank holds in staging, one stage.
struct SentSide {
  PairStream stream;
  std::uint64_t staging = 0;  // offset of its chunk
  std::vector<PlacedMove> moves;
};

// What this rank sends in one stage, and what it receives, pair after pair.
std::vector<SentSide> sendingSides(const PreparePart& part, const PeerAddresses& peers, const SentPlan& plan,
                                   int stage);
std::vector<SentSide> receivingSides(const PreparePart& part, const SentPlan& plan, int stage);

// Gives every side its place in staging; returns the bytes of all.
std::uint64_t placeSides(std::vector<SentSide>& sides);

// Bytes of round `round` of a side.
std::uint64_t roundBytes(const SentSide& side, std::uint64_t round);

// Moves of round `round` between memory and the chunk at `chunk`; `packs`: into it, under the grant of `peer`.
void chunkMoves(const SentSide& side, std::uint64_t round, std::uint64_t chunk, bool packs, std::int32_t peer,
                std::vector<Move>& into);

}  // namespace nccl_ext
