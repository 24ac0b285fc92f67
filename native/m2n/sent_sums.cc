// SPDX-License-Identifier: Apache-2.0
#include "m2n/sent_sums.hpp"

namespace nccl_ext {
namespace {

// Sums of this rank's groups to `receiver` in one stage: index of the first, and how many.
std::pair<std::uint64_t, std::uint64_t> groupsTo(const PeerPart& sender, int receiver, int stage) {
  std::uint64_t first = 0, count = 0;
  for (std::size_t i = 0; i < sender.sent.size(); i++) {
    if (sender.sent[i].peer != receiver || sender.sent[i].stage != stage) continue;
    if (count++ == 0) first = i;
  }
  return {first, count};
}

}  // namespace

Outcome<ArrivingSums> allocateSums(const std::vector<PeerPart>& parts, const Routes& routes, int rank,
                                   const NcclApi& api, int device) {
  ArrivingSums sums;
  std::uint64_t bytes = 0;
  std::vector<std::uint64_t> offsets(parts.size());
  for (std::size_t sender = 0; sender < parts.size(); sender++) {
    offsets[sender] = bytes;
    if (!routes.isSent(static_cast<int>(sender), rank)) continue;
    for (int stage = 0; stage < kTransferStages; stage++)
      bytes += 2 * groupsTo(parts[sender], rank, stage).second * sizeof(std::uint64_t);
  }
  Outcome<DeviceMemory> memory = DeviceMemory::allocate(api, device, bytes, MemoryKind::kPlain);
  if (!memory) return memory.error();
  sums.memory = std::move(memory.value());
  const auto base = reinterpret_cast<std::uint64_t>(sums.memory.address());
  for (std::size_t sender = 0; sender < parts.size(); sender++)
    sums.at.push_back(routes.isSent(static_cast<int>(sender), rank) ? base + offsets[sender] : 0);
  return sums;
}

void sendSums(std::vector<Sending>& group, const std::vector<PeerPart>& parts, const PeerAddresses& peers, int rank,
              const PairStream& stream, int stage) {
  constexpr std::uint64_t kSum = sizeof(std::uint64_t);
  const PeerPart& sender = parts[static_cast<std::size_t>(stream.sender)];
  const auto [first, count] = groupsTo(sender, stream.receiver, stage);
  const bool sends = stream.sender == rank;
  std::uint64_t at = 0, odd = 0;
  if (sends) {
    at = peers.controls[static_cast<std::size_t>(rank)] + sumsOffset(static_cast<int>(parts.size())) + first * kSum;
    odd = sender.sent.size() * kSum;
  } else {
    const std::uint64_t before = stage == 0 ? 0 : groupsTo(sender, rank, 0).second;
    at = peers.sums[static_cast<std::size_t>(stream.sender)] + before * kSum;
    odd = (groupsTo(sender, rank, 0).second + groupsTo(sender, rank, 1).second) * kSum;
  }
  for (const std::uint64_t address : {at, at + odd})
    group.push_back({sends ? stream.receiver : stream.sender, sends, address, count * kSum});
}

}  // namespace nccl_ext
