// SPDX-License-Identifier: Apache-2.0
#include "m2n/find_peers.hpp"

#include <algorithm>

namespace nccl_ext {
namespace {

using Problem = std::optional<ErrorRecord>;

class Finding {
 public:
  Finding(RankState& rank, const std::vector<PeerPart>& parts, PathChoice choice)
      : rank_(rank), parts_(parts), choice_(choice), self_(parts[static_cast<std::size_t>(rank.rank)]) {}

  Outcome<FoundPeers> run() {
    PeerAddresses& addresses = found_.addresses;
    addresses.controls.resize(parts_.size());
    addresses.destinations.resize(parts_.size());
    addresses.sums.resize(parts_.size());
    for (std::size_t peer = 0; peer < parts_.size(); peer++) {
      const int number = static_cast<int>(peer);
      if (number == rank_.rank) {
        addresses.controls[peer] = self_.flags.address;
      } else if (isKnown(number)) {
        if (Problem problem = reachAt(number, parts_[peer].flags, false, addresses.controls[peer])) return *problem;
      }
      if (Problem problem = findDestinations(number, addresses.destinations[peer])) return *problem;
    }
    return std::move(found_);
  }

 private:
  bool isKnown(int peer) const {
    for (const auto* lists : {self_.expected, self_.receivers}) {
      for (int stage = 0; stage < 2; stage++) {
        if (std::count(lists[stage].begin(), lists[stage].end(), peer) > 0) return true;
      }
    }
    return false;
  }

  Problem findDestinations(int peer, std::vector<std::uint64_t>& addresses) {
    const PeerPart& owner = parts_[static_cast<std::size_t>(peer)];
    addresses.assign(owner.destinations.size(), 0);
    if (peer != rank_.rank && choice_ == PathChoice::kSendrecv) return std::nullopt;
    std::map<std::int32_t, std::uint64_t> reached;  // by memory
    for (const WrittenExtent& written : self_.written) {
      if (written.receiver != peer) continue;
      const BoundTensor& binding = owner.destinations[static_cast<std::size_t>(written.tensor)];
      const Exposure& memory = owner.memories[static_cast<std::size_t>(binding.memory)];
      const auto [found, added] = reached.try_emplace(binding.memory, memory.address);
      if (added && peer != rank_.rank) {
        if (Problem problem = reachAt(peer, memory, true, found->second)) return problem;
      }
      addresses[static_cast<std::size_t>(written.tensor)] =
          found->second + static_cast<std::uint64_t>(binding.byteOffset);
    }
    return std::nullopt;
  }

  Problem reachAt(int peer, const Exposure& memory, bool destination, std::uint64_t& address) {
    const Wish wish{rank_.rank, rank_.device, peer, parts_[static_cast<std::size_t>(peer)].where, memory};
    Outcome<Reached> reached = reach(wish, rank_.mappings);
    if (reached) {
      if (reached.value().hold) found_.holds.push_back(reached.value().hold);
      address = reached.value().address;
      return std::nullopt;
    }
    const ErrorRecord& error = reached.error();
    if (error.code != ErrorCode::kUnsupported || choice_ == PathChoice::kMapped) return error;
    address = 0;
    found_.unreached.push_back({peer, destination, error.detail + ".", error.help});
    return std::nullopt;
  }

  RankState& rank_;
  const std::vector<PeerPart>& parts_;
  const PathChoice choice_;
  const PeerPart& self_;
  FoundPeers found_;
};

}  // namespace

Outcome<FoundPeers> findPeers(RankState& rank, const std::vector<PeerPart>& parts, PathChoice choice) {
  return Finding(rank, parts, choice).run();
}

}  // namespace nccl_ext
