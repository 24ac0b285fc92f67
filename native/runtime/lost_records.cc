// SPDX-License-Identifier: Apache-2.0
// Records of events that are no work done: their rank failed or was aborted before it got there, and drains them, which to
// CUDA looks like any other end. The waits of other ranks fail by the host, which finds both in the queues of streams.
//
// R1 What the host cannot see here goes on: where a kernel found the failure, records may have drained before the host
//    noticed.
// R2 The rank that waits is drained before the one that is waited for: nothing behind the wait takes place.
#include "runtime/runtime.hpp"

namespace nccl_ext {
namespace {

// The rank's number in the world that all others were split from.
int originOf(const RankState& rank) {
  const std::shared_ptr<RankState> parent = rank.parent.lock();
  return parent ? originOf(*parent) : rank.rank;
}

// What a world calls the rank that a record belongs to; -1 where it has no such rank.
int peerIn(const World& world, const LostRecord& lost) {
  if (lost.world.lock().get() == &world) return lost.rank;
  for (const RankState* peer : world.locals) {
    if (originOf(*peer) == lost.origin) return peer->rank;
  }
  return -1;
}

ErrorRecord lossFor(const RankState& rank, const LostRecord& lost) {
  const int peer = peerIn(*rank.world, lost);
  const std::string awaited =
      peer >= 0 ? "rank " + std::to_string(peer)
                : "rank " + std::to_string(lost.origin) + " of the world that this one was split from";
  // Who lost whom is said in the numbers of the lost rank's world.
  const bool ours = lost.world.lock() == rank.world && lost.cause >= 0;
  const std::string why = ours ? "lost rank " + std::to_string(lost.cause) : "failed, was aborted or disposed";
  return fail(ErrorCode::kRankLost, "wait",
              "rank " + std::to_string(rank.rank) + " waited in wait for " + awaited + ", which " + why)
      .ofRank(rank.rank)
      .fromPeer(ours ? lost.cause : peer)
      .helped("Dispose the remaining ranks and make a new world.");
}

const LostRecord* lostAmong(const StreamState& stream) {
  for (const Operation& operation : stream.queue) {
    for (const auto& record : operation.awaits) {
      if (record->lost) return &*record->lost;
    }
  }
  return nullptr;
}

}  // namespace

// Marks what a stream of an unusable rank has not recorded; whether there was anything.
bool Runtime::loseRecordsOf(const StreamState& stream) {
  const RankState& rank = *stream.owner;
  const int cause = rank.poison->code == ErrorCode::kRankLost ? rank.poison->peer : -1;
  bool any = false;
  for (const Operation& operation : stream.queue) {
    if (operation.records.empty()) continue;
    if (!any && cudaEventQuery(stream.mark(operation.ticket)) == cudaSuccess) continue;
    (void)cudaGetLastError();
    for (const auto& record : operation.records) {
      if (record->lost) continue;
      record->lost = LostRecord{rank.world, rank.rank, originOf(rank), cause};
      any = true;
    }
  }
  return any;
}

// Before the rank's work drains.
void Runtime::loseRecords(const RankState& rank) {
  bool any = false;
  for (const StreamState* stream : rank.streams) any = loseRecordsOf(*stream) || any;
  if (any) failWaits();
}

// Fails the streams that wait for a lost record, and their ranks. A rank that is unusable already has its reason.
void Runtime::failWaits() {
  std::vector<std::pair<Rank, ErrorRecord>> failed;
  for (const Rank& rank : ranks_) {
    if (rank->poison) continue;
    std::optional<ErrorRecord> error;
    for (StreamState* stream : rank->streams) {
      const LostRecord* const lost = lostAmong(*stream);
      if (lost == nullptr) continue;
      error = lossFor(*rank, *lost);
      if (!stream->error) stream->error = error;
    }
    if (error) failed.emplace_back(rank, *error);
  }
  // Poisoning one takes its children along, whose streams have their own reasons by now.
  for (const auto& [rank, error] : failed) poison(*rank, error);
}

}  // namespace nccl_ext
