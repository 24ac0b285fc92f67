// SPDX-License-Identifier: Apache-2.0
#include "m2n/transfer_paths.hpp"

namespace nccl_ext {

std::vector<TransferPath> pathsOf(const std::vector<PeerPart>& parts, const Routes& routes, int rank) {
  std::vector<TransferPath> paths;
  const auto pathName = [&](int sender, int receiver) {
    if (sender == receiver) return "local";
    return routes.isSent(sender, receiver) ? "sendrecv" : "mapped";
  };
  for (const PeerBytes& to : parts[static_cast<std::size_t>(rank)].traffic)
    paths.push_back({to.peer, "send", pathName(rank, to.peer), to.bytes, routes.why(rank, to.peer)});
  for (std::size_t sender = 0; sender < parts.size(); sender++) {
    const int from = static_cast<int>(sender);
    for (const PeerBytes& to : parts[sender].traffic) {
      if (to.peer != rank || from == rank) continue;
      paths.push_back({from, "receive", pathName(from, rank), to.bytes, routes.why(from, rank)});
    }
  }
  return paths;
}

}  // namespace nccl_ext
