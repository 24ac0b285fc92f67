// SPDX-License-Identifier: Apache-2.0
#include "m2n/check_peers.hpp"

#include <algorithm>
#include <set>
#include <tuple>

namespace nccl_ext {
namespace {

constexpr const char* kHelp = "The programs of all ranks must come from one plan.";

// By sender, receiver, stage, tensor.
using Group = std::tuple<int, int, int, int>;

ErrorRecord disagreement(int rank, int peer, const std::string& detail) {
  return fail(ErrorCode::kDisagreement, kPrepareOp, detail).ofRank(rank).fromPeer(peer).helped(kHelp);
}

}  // namespace

std::optional<ErrorRecord> peersProblem(const std::vector<PeerPart>& parts) {
  for (std::size_t stage = 0; stage < 2; stage++) {
    std::vector<std::set<int>> senders(parts.size());
    for (std::size_t sender = 0; sender < parts.size(); sender++) {
      for (const std::int32_t receiver : parts[sender].receivers[stage])
        senders[static_cast<std::size_t>(receiver)].insert(static_cast<int>(sender));
    }
    for (std::size_t rank = 0; rank < parts.size(); rank++) {
      const std::set<int> expected(parts[rank].expected[stage].begin(), parts[rank].expected[stage].end());
      std::vector<int> wrong;
      std::set_difference(expected.begin(), expected.end(), senders[rank].begin(), senders[rank].end(),
                          std::back_inserter(wrong));
      const bool missing = !wrong.empty();
      if (!missing) {
        std::set_difference(senders[rank].begin(), senders[rank].end(), expected.begin(), expected.end(),
                            std::back_inserter(wrong));
      }
      if (wrong.empty()) continue;
      return disagreement(static_cast<int>(rank), wrong[0],
                          "rank " + std::to_string(rank) +
                              (missing ? " expects bytes from" : " does not expect the bytes of") + " rank " +
                              std::to_string(wrong[0]) + " in stage " + std::to_string(stage));
    }
  }
  return std::nullopt;
}

std::optional<ErrorRecord> hashGroupsProblem(const std::vector<PeerPart>& parts) {
  std::set<Group> sent, received;
  for (std::size_t rank = 0; rank < parts.size(); rank++) {
    const int self = static_cast<int>(rank);
    for (const HashGroup& group : parts[rank].sent) sent.emplace(self, group.peer, group.stage, group.tensor);
    for (const HashGroup& group : parts[rank].received) received.emplace(group.peer, self, group.stage, group.tensor);
  }
  std::vector<Group> wrong;
  std::set_symmetric_difference(sent.begin(), sent.end(), received.begin(), received.end(), std::back_inserter(wrong));
  if (wrong.empty()) return std::nullopt;
  const auto [sender, receiver, stage, tensor] = wrong[0];
  return disagreement(receiver, sender,
                      "ranks " + std::to_string(sender) + " and " + std::to_string(receiver) +
                          " do not agree whether tensor " + std::to_string(tensor) + " travels between them in stage " +
                          std::to_string(stage));
}

}  // namespace nccl_ext
