// SPDX-License-Identifier: Apache-2.0
#include "m2n/prepare_part.hpp"

namespace nccl_ext {
namespace {

ErrorRecord invalid(int rank, std::string detail) {
  return fail(ErrorCode::kInvalidArgument, kPrepareOp, std::move(detail)).ofRank(rank);
}

bool isBefore(const MoveTable& table, std::size_t a, std::size_t b) {
  if (table.stage[a] != table.stage[b]) return table.stage[a] < table.stage[b];
  if (table.peer[a] != table.peer[b]) return table.peer[a] < table.peer[b];
  return table.tensor[a] < table.tensor[b];
}

bool hasShortArrays(const MoveTable& table) {
  const auto shorter = [](const auto& array, std::size_t needed) { return array.size() < needed; };
  const std::size_t moves = table.length, loops = moves * kMoveLoops;
  return shorter(table.peer, moves) || shorter(table.stage, moves) || shorter(table.tensor, moves) ||
         shorter(table.sourceTensor, moves) || shorter(table.sourceOffset, moves) ||
         shorter(table.destinationOffset, moves) || shorter(table.inner, moves) || shorter(table.transform, moves) ||
         shorter(table.counts, loops) || shorter(table.sourceStrides, loops) ||
         shorter(table.destinationStrides, loops);
}

std::optional<ErrorRecord> tableProblem(const MoveTable& table, const std::string& name, int rank, int size) {
  const std::string moveOf = "program." + name + " move ";
  if (hasShortArrays(table))
    return invalid(rank, "program." + name + " has arrays shorter than its " + std::to_string(table.length) + " moves");
  for (std::size_t i = 0; i < table.length; i++) {
    if (table.peer[i] < 0 || table.peer[i] >= size)
      return invalid(rank, moveOf + std::to_string(i) + " has peer " + std::to_string(table.peer[i]));
    if (table.stage[i] > 1)
      return invalid(rank, moveOf + std::to_string(i) + " has stage " + std::to_string(table.stage[i]));
    if (i > 0 && isBefore(table, i, i - 1))
      return invalid(rank, "program." + name + " is not sorted by stage, peer and tensor at move " + std::to_string(i));
  }
  for (const auto* array : {&table.sourceOffset, &table.destinationOffset, &table.inner, &table.counts,
                            &table.sourceStrides, &table.destinationStrides}) {
    for (const std::int64_t value : *array) {
      if (value < 0) {
        return invalid(rank,
                       "program." + name + " holds " + std::to_string(value) + " where a non-negative integer must be");
      }
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<PathChoice> pathChoiceOf(const std::string& path) {
  if (path.empty() || path == "auto") return PathChoice::kAuto;
  if (path == "mapped") return PathChoice::kMapped;
  if (path == "sendrecv") return PathChoice::kSendrecv;
  return std::nullopt;
}

std::optional<ErrorRecord> programProblem(const TransferProgram& program, bool verify, int rank, int size) {
  if (program.rank != rank) {
    return invalid(
        rank, "the program of rank " + std::to_string(program.rank) + " was given to rank " + std::to_string(rank));
  }
  if (program.size != size) {
    return invalid(
        rank, "the program is for " + std::to_string(program.size) + " ranks, the world has " + std::to_string(size));
  }
  if (verify && !program.receives)
    return invalid(rank, "program.receives is missing, which a transfer that verifies needs");
  for (const auto* peers : {&program.receivePeers, &program.forwardPeers}) {
    for (const std::int32_t peer : *peers) {
      if (peer < 0 || peer >= size) {
        return invalid(rank, "peer " + std::to_string(peer) + " is not a rank of a world of " + std::to_string(size));
      }
    }
  }
  if (const auto problem = tableProblem(program.sends, "sends", rank, size)) return problem;
  return program.receives ? tableProblem(*program.receives, "receives", rank, size) : std::nullopt;
}

}  // namespace nccl_ext
