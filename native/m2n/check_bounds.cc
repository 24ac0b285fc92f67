// SPDX-License-Identifier: Apache-2.0
#include "m2n/check_bounds.hpp"

namespace nccl_ext {
namespace {

// One side of a move: whose tensor, and from where to where.
struct Side {
  const char* role;
  int owner;
  std::int32_t tensor;
  const Bindings& bindings;
  const std::vector<Exposure>& memories;  // that these lead to
  std::int64_t offset;
  std::int64_t extent;  // -1: beyond every buffer
};

std::optional<ErrorRecord> outside(int rank, const Side& side) {
  const std::string role = side.role, tensor = std::to_string(side.tensor), owner = std::to_string(side.owner);
  const auto index = static_cast<std::size_t>(side.tensor);
  if (side.tensor < 0 || index >= side.bindings.size() || side.bindings[index].memory < 0) {
    return fail(ErrorCode::kInvalidArgument, kPrepareOp,
                "rank " + owner + " binds no " + role + " for tensor " + tensor)
        .ofRank(rank)
        .fromPeer(side.owner)
        .helped("Bind a buffer to " + role + " tensor " + tensor + " on rank " + owner + ".");
  }
  const BoundTensor& binding = side.bindings[index];
  const auto memory = static_cast<std::size_t>(binding.memory);
  const std::int64_t bytes = memory < side.memories.size() ? side.memories[memory].bytes : 0;
  // Offsets are below 2^53 and extents below 2^62: the sum does not overflow.
  const std::int64_t end = side.extent < 0 ? INT64_MAX : binding.byteOffset + side.offset + side.extent;
  if (end <= bytes) return std::nullopt;
  return fail(ErrorCode::kOutOfBounds, kPrepareOp,
              role + " tensor " + tensor + " on rank " + owner + " needs " + std::to_string(end) +
                  " bytes of a buffer of " + std::to_string(bytes))
      .ofRank(rank)
      .fromPeer(side.owner)
      .expecting(bytes, end);
}

// Stage 1 forwards what arrived in this rank's destinations.
std::optional<ErrorRecord> sourceProblem(const PreparePart& part, const PeerPart& self, const MoveTable& table,
                                         std::size_t move, std::int64_t unit) {
  const bool first = table.stage[move] == 0;
  return outside(part.rank, {first ? "source" : "destination", part.rank, table.sourceTensor[move],
                             first ? part.sources : part.destinations, self.memories, table.sourceOffset[move],
                             extentOf(table, move, table.sourceStrides, unit)});
}

std::optional<ErrorRecord> destinationProblem(int rank, const PeerPart& owner, int ownerRank, const MoveTable& table,
                                              std::size_t move, std::int64_t unit) {
  return outside(rank, {"destination", ownerRank, table.tensor[move], owner.destinations, owner.memories,
                        table.destinationOffset[move], extentOf(table, move, table.destinationStrides, unit)});
}

ErrorRecord unknownTransform(int rank, std::size_t move, std::uint16_t transform) {
  return fail(ErrorCode::kInvalidArgument, kPrepareOp,
              "move " + std::to_string(move) + " has the unknown transform " + std::to_string(transform))
      .ofRank(rank);
}

}  // namespace

std::optional<ErrorRecord> boundsProblem(const PreparePart& part, const std::vector<PeerPart>& parts) {
  const MoveTable& sends = part.program->sends;
  const PeerPart& self = parts[static_cast<std::size_t>(part.rank)];
  for (std::size_t move = 0; move < sends.length; move++) {
    if (isEmptyMove(sends, move)) continue;
    const auto unit = unitBytesOf(sends.transform[move]);
    if (!unit) return unknownTransform(part.rank, move, sends.transform[move]);
    if (auto problem = sourceProblem(part, self, sends, move, unit->source)) return problem;
    const int peer = sends.peer[move];
    const PeerPart& owner = parts[static_cast<std::size_t>(peer)];
    if (auto problem = destinationProblem(part.rank, owner, peer, sends, move, unit->destination)) return problem;
  }
  if (!part.verify || !part.program->receives) return std::nullopt;
  const MoveTable& receives = *part.program->receives;
  for (std::size_t move = 0; move < receives.length; move++) {
    if (isEmptyMove(receives, move)) continue;
    const auto unit = unitBytesOf(receives.transform[move]);
    if (!unit) return unknownTransform(part.rank, move, receives.transform[move]);
    if (auto problem = destinationProblem(part.rank, self, part.rank, receives, move, unit->destination))
      return problem;
  }
  return std::nullopt;
}

}  // namespace nccl_ext
