// SPDX-License-Identifier: Apache-2.0
// Ends executions that wait for a group of NCCL in vain: the poller looks, the owner's thread decides.
#include "m2n/launch_execution.hpp"
#include "m2n/prepared_transfer.hpp"
#include "runtime/runtime.hpp"

namespace nccl_ext {

// Another execution of it is on a stream.
void Runtime::watchSends(const std::shared_ptr<PreparedTransfer>& transfer) {
  if (!transfer->watch || !transfer->watch->expect()) return;
  const std::weak_ptr<PreparedTransfer> weak = transfer;
  poller_.watch(transfer.get(), [this, weak, watch = transfer->watch] {
    const SentState state = watch->look(SentWatch::Clock::now());
    if (state == SentState::kGoing) return false;
    if (state != SentState::kDone) {
      mailbox_.post([this, weak, state, awaited = watch->awaited()] {
        if (const auto alive = weak.lock()) endSends(*alive, state, awaited);
      });
    }
    return true;
  });
}

// The stream's next synchronize learns why; then what NCCL still does ends, and what is behind it does not run.
void Runtime::endSends(PreparedTransfer& transfer, SentState state, const std::vector<int>& awaited) {
  RankState& rank = *transfer.owner;
  notice(rank);
  if (!rank.poison) {
    const std::string self = "rank " + std::to_string(rank.rank);
    const RankWords& words = rank.cells->words();
    const bool lost = state == SentState::kStopped;
    const int peer = lost ? peek<kSystem>(words.peer) : awaited.empty() ? -1 : awaited[0];
    const ErrorRecord error =
        lost ? fail(ErrorCode::kRankLost, kTransferOp,
                    self + " waited in transfer for rank " + std::to_string(peer) + ", which was aborted or disposed")
                   .ofRank(rank.rank)
                   .fromPeer(peer)
                   .helped("Dispose the ranks and make a new world.")
             : fail(ErrorCode::kTimeout, kTransferOp,
                    self + " waited too long in transfer to exchange bytes with " + rankNames(awaited))
                   .ofRank(rank.rank)
                   .fromPeer(peer)
                   .helped(
                       "Check that every rank enqueues the same operations in the same order, or raise the timeout.");
    if (transfer.stream != nullptr && !transfer.stream->error) transfer.stream->error = error;
    poison(rank, error);
  }
  rank.sends.abort();
}

}  // namespace nccl_ext
