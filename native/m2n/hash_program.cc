// SPDX-License-Identifier: Apache-2.0
#include "m2n/hash_program.hpp"

#include <map>
#include <tuple>

namespace nccl_ext {
namespace {

std::uint64_t addressOf(const PreparePart& part, const Bindings& bindings, std::int32_t tensor) {
  const BoundTensor& binding = bindings[static_cast<std::size_t>(tensor)];
  return part.memories[static_cast<std::size_t>(binding.memory)].address +
         static_cast<std::uint64_t>(binding.byteOffset);
}

// A side of the moves of a table; `want` picks those of a list, `group` and word numbers go through all of them.
template <class Want, class Side>
HashList listOf(const MoveTable& table, const std::vector<std::int64_t>& strides, Want want, Side side) {
  HashList list;
  std::size_t groups = 0;
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
    HashMove move;
    const std::uint64_t unit = static_cast<std::uint64_t>(unitBytesOf(table.transform[index])->destination);
    move.inner = static_cast<std::uint64_t>(table.inner[index]);
    move.runWords = (move.inner * unit + 7) / 8;
    std::uint64_t runs = 1;
    for (std::size_t loop = 0; loop < kMoveLoops; loop++) {
      move.counts[loop] = static_cast<std::uint64_t>(table.counts[index * kMoveLoops + loop]);
      move.strides[loop] = strides[index * kMoveLoops + loop];
      runs *= move.counts[loop];
    }
    move.number = number;
    move.group = static_cast<std::uint32_t>(groups - 1);
    number += runs * move.runWords;
    if (!want(index)) continue;
    move.before = list.words;
    side(index, unit, move);
    list.words += runs * move.runWords;
    list.moves.push_back(move);
  }
  return list;
}

}  // namespace

HashList sentHashes(const PreparePart& part, int stage) {
  const MoveTable& sends = part.program->sends;
  return listOf(
      sends, sends.sourceStrides, [&](std::size_t index) { return sends.stage[index] == stage; },
      [&](std::size_t index, std::uint64_t, HashMove& move) {
        move.address = addressOf(part, stage == 0 ? part.sources : part.destinations, sends.sourceTensor[index]) +
                       static_cast<std::uint64_t>(sends.sourceOffset[index]);
        move.transform = sends.transform[index];
        // Equal dtypes convert nothing.
        if (move.transform != 0 && (move.transform - 1) / 32 == (move.transform - 1) % 32) {
          move.inner *= kDTypeBytes[(move.transform - 1) % 32];
          move.transform = 0;
        }
      });
}

HashList receivedHashes(const PreparePart& part) {
  const MoveTable& receives = *part.program->receives;
  return listOf(
      receives, receives.destinationStrides, [](std::size_t) { return true; },
      [&](std::size_t index, std::uint64_t unit, HashMove& move) {
        move.address = addressOf(part, part.destinations, receives.tensor[index]) +
                       static_cast<std::uint64_t>(receives.destinationOffset[index]);
        // As bytes of the destination, whatever was converted on the way.
        move.inner *= unit;
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
