// SPDX-License-Identifier: Apache-2.0
#include "m2n/hash_program.hpp"

#include <map>
#include <tuple>

#include "m2n/hash_side.hpp"

namespace nccl_ext {
namespace {

std::uint64_t addressOf(const PreparePart& part, const Bindings& bindings, std::int32_t tensor) {
  const BoundTensor& binding = bindings[static_cast<std::size_t>(tensor)];
  return part.memories[static_cast<std::size_t>(binding.memory)].address +
         static_cast<std::uint64_t>(binding.byteOffset);
}

// One side of the moves of a table; `want` picks those of the list, groups and word numbers go through all of them.
template <class Want, class Side>
HashList listOf(const MoveTable& table, const std::vector<std::int64_t>& strides, int sms, Want want, Side side) {
  HashList list;
  std::uint32_t groups = 0;
  std::uint64_t number = 0;
  std::optional<std::tuple<int, int, int>> open;
  for (std::size_t index = 0; index < table.length; index++) {
    if (isEmptyMove(table, index)) continue;
    const std::tuple<int, int, int> key{table.stage[index], table.peer[index], table.tensor[index]};
    if (open != key) {
      open = key;
      groups++;
      number = 0;
    }
    HashSide shape;
    shape.inner = static_cast<std::uint64_t>(table.inner[index]);
    shape.wordUnit = static_cast<std::uint64_t>(unitBytesOf(table.transform[index])->destination);
    for (std::size_t loop = 0; loop < kMoveLoops; loop++) {
      shape.counts[loop] = static_cast<std::uint64_t>(table.counts[index * kMoveLoops + loop]);
      shape.strides[loop] = strides[index * kMoveLoops + loop];
    }
    shape.group = groups - 1;
    shape.number = number;
    number += wordsOf(shape);
    if (!want(index)) continue;
    side(index, shape);
    addSide(shape, list.moves);
  }
  cutHashTiles(list, sms);
  return list;
}

}  // namespace

HashList sentHashes(const PreparePart& part, int stage, int sms) {
  const MoveTable& sends = part.program->sends;
  return listOf(
      sends, sends.sourceStrides, sms, [&](std::size_t index) { return sends.stage[index] == stage; },
      [&](std::size_t index, HashSide& side) {
        side.address = addressOf(part, stage == 0 ? part.sources : part.destinations, sends.sourceTensor[index]) +
                       static_cast<std::uint64_t>(sends.sourceOffset[index]);
        side.unit = static_cast<std::uint64_t>(unitBytesOf(sends.transform[index])->source);
        side.transform = sends.transform[index];
      });
}

HashList receivedHashes(const PreparePart& part, int sms) {
  const MoveTable& receives = *part.program->receives;
  return listOf(
      receives, receives.destinationStrides, sms, [](std::size_t) { return true; },
      [&](std::size_t index, HashSide& side) {
        side.address = addressOf(part, part.destinations, receives.tensor[index]) +
                       static_cast<std::uint64_t>(receives.destinationOffset[index]);
        // Converted when it arrived.
        side.unit = side.wordUnit;
      });
}

std::vector<HashCheck> checksOf(const PreparePart& part, const std::vector<PeerPart>& parts,
                                const PeerAddresses& peers) {
  const int size = static_cast<int>(parts.size());
  std::map<int, std::map<std::tuple<int, int>, std::size_t>> sent;  // by sender: number of a group of this rank's
  std::vector<HashCheck> checks;
  for (const HashGroup& group : parts[static_cast<std::size_t>(part.rank)].received) {
    const auto sender = static_cast<std::size_t>(group.peer);
    const bool arrives = peers.routes.isSent(group.peer, part.rank);
    const auto [known, added] = sent.try_emplace(group.peer);
    for (std::size_t i = 0; added && i < parts[sender].sent.size(); i++) {
      const HashGroup& other = parts[sender].sent[i];
      const std::size_t number = arrives ? known->second.size() : i;
      if (other.peer == part.rank) known->second[{other.stage, other.tensor}] = number;
    }
    const std::uint64_t sums = arrives ? peers.sums[sender] : peers.controls[sender] + sumsOffset(size);
    const std::size_t groups = arrives ? known->second.size() : parts[sender].sent.size();
    HashCheck check;
    check.sent = sums + known->second.at({group.stage, group.tensor}) * sizeof(std::uint64_t);
    check.odd = groups * sizeof(std::uint64_t);
    check.sender = group.peer;
    check.tensor = group.tensor;
    check.stage = group.stage;
    checks.push_back(check);
  }
  return checks;
}

std::size_t sumsOffset(int size) {
  return controlCells(size) * sizeof(TransferCell);
}

std::size_t blockBytes(int size, std::size_t groups) {
  return sumsOffset(size) + 2 * groups * sizeof(std::uint64_t);
}

}  // namespace nccl_ext
