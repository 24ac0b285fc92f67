// SPDX-License-Identifier: Apache-2.0
// What pairs of ranks that send tell each other about their moves: the receiver has to unpack what its sender packs, and
// a plan gives it no table of that.
//
// The bytes of a pair in one stage are a stream: its moves in the order of the sender's table, each from the next multiple
// of kMoveAlignment on and without gaps, in bytes of the destination.
#pragma once

#include "m2n/bundle_moves.hpp"
#include "m2n/routes.hpp"
#include "m2n/staging_rounds.hpp"

namespace nccl_ext {

// Elements of every dtype lie whole between two chunks, and the widest loads fit.
inline constexpr std::uint64_t kMoveAlignment = 16;

// The receiver's side of one move, without addresses.
struct SentMove {
  std::int32_t receiver = 0;
  std::int32_t stage = 0;
  std::int32_t tensor = 0;
  std::uint64_t offset = 0;  // from where the tensor is bound
  std::uint64_t inner = 0;   // bytes of a run
  std::array<std::uint64_t, 3> counts{1, 1, 1};
  std::array<std::int64_t, 3> strides{};
};

// This rank's moves to the receivers that it sends to.
Bytes encodeSentMoves(const PreparePart& part, const Routes& routes);
std::vector<SentMove> decodeSentMoves(const Bytes& bytes);

// Where the next move of a stream begins behind one that ends at `bytes`.
std::uint64_t nextMoveAt(std::uint64_t bytes);

// The streams of one stage among all ranks; `moves` by sender.
std::vector<PairStream> streamsOf(const std::vector<std::vector<SentMove>>& moves, int stage,
                                  const StagingLimits& limits);

}  // namespace nccl_ext
