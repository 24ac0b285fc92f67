// SPDX-License-Identifier: Apache-2.0
#include "m2n/stage_copies.hpp"

#include <algorithm>

#include "m2n/move_shape.hpp"
#include "m2n/prepare_part.hpp"

namespace nccl_ext {
namespace {

Outcome<std::optional<EngineCopies>> copiesAlone(int rank, const std::vector<Move>& moves,
                                                 const GraphCondition& condition) {
  using Copies = std::optional<EngineCopies>;
  if (moves.empty()) return Copies();
  if (!condition) {
    return fail(ErrorCode::kUnsupported, kPrepareOp,
                "copy engines alone (sms: 0) are out of reach on rank " + std::to_string(rank) + ": " + condition.why())
        .ofRank(rank)
        .helped("Update the driver, or leave out sms.");
  }
  std::optional<EngineRefusal> refusal;
  EngineCopies copies = engineCopiesOf(moves, refusal);
  if (!refusal) return Copies(std::move(copies));
  const Move& move = moves[refusal->move];
  return fail(ErrorCode::kUnsupported, kPrepareOp,
              "tensor " + std::to_string(move.tensor) + " from rank " + std::to_string(rank) + " to rank " +
                  std::to_string(move.peer) + " " + refusal->reason + ": copy engines alone (sms: 0) cannot move it")
      .ofRank(rank)
      .fromPeer(move.peer)
      .helped("Leave out sms on rank " + std::to_string(rank) + ", or let it have at least 1 SM.");
}

std::uint64_t bytesOf(const std::vector<Move>& moves) {
  std::uint64_t bytes = 0;
  for (const Move& move : moves) bytes += runsOf(move) * move.inner;
  return bytes;
}

// Of all stages or of none, so that one way describes what the rank sends.
StageCopies copiesUnasked(int rank, const StageMoves& moves, const EngineLimits& limits) {
  if (!*limits.condition) return {};
  const auto isLocal = [rank](const Move& move) { return move.peer == rank; };
  StageCopies stages;
  for (std::size_t stage = 0; stage < kTransferStages; stage++) {
    const std::vector<Move>& own = moves[stage];
    if (own.empty()) continue;
    const std::uint64_t bytes = bytesOf(own);
    // A move is at least one copy, and a model has many.
    if (bytes < kLargeEngineBytes || bytes / own.size() < kLargeEngineCopy || bytes > limits.mostUnasked) return {};
    if (std::any_of(own.begin(), own.end(), isLocal)) return {};
    std::optional<EngineRefusal> refusal;
    EngineCopies copies = engineCopiesOf(fromOwnPeerOn(own, rank), refusal);
    if (refusal || !areLargeRuns(copies)) return {};
    stages[stage] = std::move(copies);
  }
  return stages;
}

}  // namespace

Outcome<StageCopies> stageCopiesOf(int rank, const StageMoves& moves, const EngineLimits& limits) {
  if (limits.choice == Engines::kNever) return StageCopies();
  if (limits.choice == Engines::kUnasked) return copiesUnasked(rank, moves, limits);
  StageCopies stages;
  for (std::size_t stage = 0; stage < kTransferStages; stage++) {
    Outcome<std::optional<EngineCopies>> copies =
        copiesAlone(rank, fromOwnPeerOn(moves[stage], rank), *limits.condition);
    if (!copies) return copies.error();
    stages[stage] = std::move(copies.value());
  }
  return stages;
}

}  // namespace nccl_ext
