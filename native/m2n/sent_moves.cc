// SPDX-License-Identifier: Apache-2.0
#include "m2n/sent_moves.hpp"

#include "runtime/wire.hpp"

namespace nccl_ext {

Bytes encodeSentMoves(const PreparePart& part, const Routes& routes) {
  const MoveTable& sends = part.program->sends;
  Writer out;
  for (std::size_t move = 0; move < sends.length; move++) {
    if (isEmptyMove(sends, move) || !routes.isSent(part.rank, sends.peer[move])) continue;
    out.number(sends.peer[move]).number(sends.stage[move]).number(sends.tensor[move]);
    out.number(sends.destinationOffset[move]);
    out.number(sends.inner[move] * unitBytesOf(sends.transform[move])->destination);
    for (std::size_t at = move * kMoveLoops; at < (move + 1) * kMoveLoops; at++)
      out.number(sends.counts[at]).number(sends.destinationStrides[at]);
  }
  return out.take();
}

std::vector<SentMove> decodeSentMoves(const Bytes& bytes) {
  constexpr std::size_t kNumbers = 5 + 2 * kMoveLoops;
  Reader in(bytes);
  std::vector<SentMove> moves(bytes.size() / (kNumbers * sizeof(std::int64_t)));
  for (SentMove& move : moves) {
    move.receiver = static_cast<std::int32_t>(in.number());
    move.stage = static_cast<std::int32_t>(in.number());
    move.tensor = static_cast<std::int32_t>(in.number());
    move.offset = static_cast<std::uint64_t>(in.number());
    move.inner = static_cast<std::uint64_t>(in.number());
    for (std::size_t loop = 0; loop < kMoveLoops; loop++) {
      move.counts[loop] = static_cast<std::uint64_t>(in.number());
      move.strides[loop] = in.number();
    }
  }
  return moves;
}

std::uint64_t nextMoveAt(std::uint64_t bytes) {
  return (bytes + kMoveAlignment - 1) / kMoveAlignment * kMoveAlignment;
}

std::vector<PairStream> streamsOf(const std::vector<std::vector<SentMove>>& moves, int stage,
                                  const StagingLimits& limits) {
  std::map<std::pair<int, int>, std::uint64_t> bytes;
  for (std::size_t sender = 0; sender < moves.size(); sender++) {
    for (const SentMove& move : moves[sender]) {
      if (move.stage != stage) continue;
      std::uint64_t& total = bytes[{static_cast<int>(sender), move.receiver}];
      total = nextMoveAt(total) + move.inner * move.counts[0] * move.counts[1] * move.counts[2];
    }
  }
  std::vector<PairStream> streams;
  for (const auto& [pair, total] : bytes) streams.push_back({pair.first, pair.second, total, 0});
  cutRounds(streams, limits);
  return streams;
}

}  // namespace nccl_ext
