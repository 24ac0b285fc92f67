// SPDX-License-Identifier: Apache-2.0
// The checks that nearly every call begins with, and how a rank becomes unusable.
#include "runtime/runtime.hpp"
#include "runtime/status_text.hpp"

namespace nccl_ext {

std::optional<ErrorRecord> Runtime::unusable(const RankState& rank, const char* op) const {
  if (rank.disposing) {
    return fail(ErrorCode::kDisposed, op, "rank " + std::to_string(rank.rank) + " is being disposed").ofRank(rank.rank);
  }
  if (!rank.poison) return std::nullopt;
  return fail(ErrorCode::kPoisoned, op,
              "rank " + std::to_string(rank.rank) + " is unusable since: " + rank.poison->detail)
      .ofRank(rank.rank)
      .fromPeer(rank.poison->peer)
      .helped("Dispose the ranks and make a new world.");
}

Outcome<Runtime::Rank> Runtime::rankOf(Handle handle, const char* op) const {
  Outcome<Rank> rank = handles_.find<RankState>(handle, op);
  if (rank && rank.value()->disposing) return *unusable(*rank.value(), op);
  return rank;
}

Outcome<Runtime::Stream> Runtime::streamOf(Handle handle, const char* op) {
  Outcome<Stream> stream = handles_.find<StreamState>(handle, op);
  if (!stream) return stream;
  RankState& rank = *stream.value()->owner;
  notice(rank);
  if (const auto error = unusable(rank, op)) return *error;
  return stream;
}

Outcome<Runtime::Buffer> Runtime::bufferFor(Handle handle, const RankState& owner, std::int64_t offset,
                                            std::int64_t bytes, const char* op) const {
  Outcome<Buffer> buffer = handles_.find<BufferState>(handle, op);
  if (!buffer) return buffer;
  const RankState& other = *buffer.value()->owner;
  if (&other != &owner) {
    return fail(ErrorCode::kForeignObject, op,
                "a buffer of rank " + std::to_string(other.rank) + " was passed to " + op + " on rank " +
                    std::to_string(owner.rank))
        .ofRank(owner.rank)
        .fromPeer(other.rank)
        .helped("Pass objects of the rank that owns the stream.");
  }
  const auto size = static_cast<std::int64_t>(buffer.value()->memory.bytes());
  if (offset < 0 || bytes < 0) {
    return fail(ErrorCode::kInvalidArgument, op, "offsets and sizes must be integers from 0 to 2^53 - 1")
        .ofRank(owner.rank);
  }
  // Both are below 2^53: their sum does not overflow.
  if (offset + bytes > size) {
    return fail(ErrorCode::kOutOfBounds, op,
                "bytes " + std::to_string(offset) + " to " + std::to_string(offset + bytes) +
                    " lie outside a buffer of " + std::to_string(size) + " bytes")
        .ofRank(owner.rank)
        .expecting(size, offset + bytes);
  }
  return buffer;
}

// Why a rank that is disposed leaves: what made it unusable, so that the others name who was lost first.
ErrorRecord Runtime::departure(const RankState& rank) {
  return rank.poison ? *rank.poison : disposed(rank);
}

ErrorRecord Runtime::disposed(const RankState& rank) {
  return fail(ErrorCode::kDisposed, "dispose", "rank " + std::to_string(rank.rank) + " was disposed").ofRank(rank.rank);
}

// Whether a kernel of the rank has failed and why, before anybody asked for the record.
void Runtime::notice(RankState& rank) {
  if (rank.poison || !rank.opened || observe<kSystem>(rank.cells->words().drained) == 0) return;
  const auto look = [&rank, this](DeviceStatus& box) {
    if (rank.poison || observe<kSystem>(box.code) == 0) return;
    const ErrorRecord record = recordOf(box, rank.rank);
    if (poisons(record)) poison(rank, record, true);
  };
  for (StreamState* stream : rank.streams) {
    look(*stream->box);
    for (const auto& graph : stream->launched) look(*graph->content.box);
  }
}

void Runtime::poison(RankState& rank, const ErrorRecord& reason, bool byKernel) {
  if (rank.poison) return;
  rank.poison = reason;
  rank.poisonedByKernel = byKernel;
  // A child whose parent is out of step with the others cannot be trusted to be in step; host calls of it end too.
  for (const Rank& child : rank.children) {
    poison(*child, reason);
    if (child->world) child->world->meeting->leave(child->rank, reason);
  }
  if (!rank.opened) return;
  rank.world->broken = true;
  loseRecords(rank);
  // Kernels that wait now, or are launched by graphs later, end at once.
  RankWords& words = rank.cells->words();
  if (peek<kSystem>(words.stop) == 0) {
    const ErrorCode code = reason.code == ErrorCode::kAborted ? ErrorCode::kAborted : ErrorCode::kPoisoned;
    words.peer = reason.peer;
    publish<kSystem>(words.stop, static_cast<std::int32_t>(code));
  }
  // What follows a group that was ended must not run, nor may a lost peer's stop let it.
  publish<kSystem>(words.drained, 1);
  rank.sends.abort();
}

// Ranks of other processes leave by the meeting alone; those of this one are told by who aborts them. A world of processes has one here.
void Runtime::watchLosses(const std::shared_ptr<World>& world, int rank) {
  if (world->oneProcess) return;
  world->meeting->watch(rank, [this, weak = std::weak_ptr<World>(world)](int lost) {
    mailbox_.post([this, weak, lost] {
      if (const auto alive = weak.lock()) tellLocals(*alive, lost);
    });
  });
}

// Ends the waits of the other ranks of this process for `lost`.
void Runtime::tellLocals(World& world, int lost) {
  for (RankState* peer : world.locals) {
    if (!peer->opened) continue;
    RankWords& words = peer->cells->words();
    if (peer->rank == lost || peek<kSystem>(words.stop) != 0) continue;
    words.peer = lost;
    publish<kSystem>(words.stop, static_cast<std::int32_t>(ErrorCode::kRankLost));
  }
}

}  // namespace nccl_ext
