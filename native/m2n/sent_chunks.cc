// SPDX-License-Identifier: Apache-2.0
#include "m2n/sent_chunks.hpp"

#include <algorithm>

#include "m2n/cut_moves.hpp"
#include "m2n/move_shape.hpp"

namespace nccl_ext {
namespace {

void place(SentSide& side, std::uint64_t& end, const Move& move, std::uint64_t unit) {
  const std::uint64_t at = nextMoveAt(end);
  side.moves.push_back({move, at});
  end = at + move.inner * unit * runsOf(move);
}

std::uint64_t addressOf(const PreparePart& part, const SentMove& move) {
  const BoundTensor& binding = part.destinations[static_cast<std::size_t>(move.tensor)];
  return part.memories[static_cast<std::size_t>(binding.memory)].address +
         static_cast<std::uint64_t>(binding.byteOffset) + move.offset;
}

}  // namespace

SentPlan sentPlanOf(const std::vector<std::vector<SentMove>>& moves, int rank, const StagingLimits& limits) {
  SentPlan plan;
  for (int stage = 0; stage < kTransferStages; stage++) {
    for (const PairStream& stream : streamsOf(moves, stage, limits)) {
      if (stream.sender == rank || stream.receiver == rank) plan.streams[stage].push_back(stream);
    }
  }
  for (std::size_t sender = 0; sender < moves.size(); sender++) {
    for (const SentMove& move : moves[sender]) {
      if (move.receiver != rank) continue;
      plan.arriving[move.stage].push_back(move);
      plan.senders[move.stage].push_back(static_cast<std::int32_t>(sender));
    }
  }
  return plan;
}

std::vector<SentSide> sendingSides(const PreparePart& part, const PeerAddresses& peers, const SentPlan& plan,
                                   int stage) {
  std::vector<SentSide> sides;
  const std::vector<Move> moves = movesOf(part, peers, stage);
  for (const PairStream& stream : plan.streams[stage]) {
    if (stream.sender != part.rank) continue;
    SentSide& side = sides.emplace_back(SentSide{stream, 0, {}});
    std::uint64_t end = 0;
    for (const Move& move : moves) {
      if (move.peer == stream.receiver) place(side, end, move, destinationBytes(move));
    }
  }
  return sides;
}

std::vector<SentSide> receivingSides(const PreparePart& part, const SentPlan& plan, int stage) {
  std::vector<SentSide> sides;
  for (const PairStream& stream : plan.streams[stage]) {
    if (stream.receiver != part.rank) continue;
    SentSide& side = sides.emplace_back(SentSide{stream, 0, {}});
    std::uint64_t end = 0;
    for (std::size_t i = 0; i < plan.arriving[stage].size(); i++) {
      const SentMove& sent = plan.arriving[stage][i];
      if (plan.senders[stage][i] != stream.sender) continue;
      Move move;
      move.peer = part.rank;
      move.destination = addressOf(part, sent);
      move.inner = sent.inner;
      move.counts = sent.counts;
      move.destinationStrides = sent.strides;
      place(side, end, move, 1);
    }
  }
  return sides;
}

std::uint64_t placeSides(std::vector<SentSide>& sides) {
  std::uint64_t bytes = 0;
  for (SentSide& side : sides) {
    side.staging = bytes;
    bytes += side.stream.chunk;
  }
  return bytes;
}

std::uint64_t roundBytes(const SentSide& side, std::uint64_t round) {
  const std::uint64_t begin = round * side.stream.chunk;
  return begin < side.stream.bytes ? std::min(side.stream.chunk, side.stream.bytes - begin) : 0;
}

void chunkMoves(const SentSide& side, std::uint64_t round, std::uint64_t chunk, bool packs, std::int32_t peer,
                std::vector<Move>& into) {
  const std::uint64_t begin = round * side.stream.chunk, end = begin + roundBytes(side, round);
  const auto ends = [](std::uint64_t at, const PlacedMove& placed) { return at < placed.at; };
  auto placed = std::upper_bound(side.moves.begin(), side.moves.end(), begin, ends);
  if (placed != side.moves.begin()) --placed;
  for (; placed != side.moves.end() && placed->at < end; ++placed) {
    Move move = placed->move;
    move.peer = peer;
    const std::uint64_t unit = packs ? destinationBytes(move) : 1;
    const std::uint64_t bytes = move.inner * unit * runsOf(move);
    const std::uint64_t from = std::max(begin, placed->at) - placed->at;
    const std::uint64_t to = std::min(end, placed->at + bytes);
    if (to <= placed->at + from) continue;  // the round begins in the gap behind it
    // Wraps around when the move began in an earlier round; what is cut out lies within the chunk.
    const std::uint64_t start = chunk + placed->at - begin;
    (packs ? move.destination : move.source) = start;
    (packs ? move.destinationStrides : move.sourceStrides) = denseStrides(move, unit);
    cutMove(move, from / unit, (to - placed->at) / unit, into);
  }
}

}  // namespace nccl_ext
