// SPDX-License-Identifier: Apache-2.0
#include "m2n/check_overlap.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "m2n/touched_runs.hpp"
#include "runtime/wire.hpp"

namespace nccl_ext {
namespace {

bool isBound(const Bindings& bindings, std::int32_t tensor) {
  const auto index = static_cast<std::size_t>(tensor);
  return tensor >= 0 && index < bindings.size() && bindings[index].memory >= 0;
}

std::int64_t addressOf(const PreparePart& part, const Bindings& bindings, std::int32_t tensor) {
  const BoundTensor& binding = bindings[static_cast<std::size_t>(tensor)];
  const BoundMemory& memory = part.memories[static_cast<std::size_t>(binding.memory)];
  return static_cast<std::int64_t>(memory.address) + binding.byteOffset;
}

std::array<std::int64_t, kMoveLoops> loopsOf(const std::vector<std::int64_t>& values, std::size_t move) {
  std::array<std::int64_t, kMoveLoops> loops{};
  std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(move * kMoveLoops), kMoveLoops, loops.begin());
  return loops;
}

void widen(std::map<std::pair<std::int32_t, bool>, Touched>& all, const Touched& touched) {
  const auto [found, added] = all.try_emplace({touched.tensor, touched.writes}, touched);
  if (added) return;
  found->second.start = std::min(found->second.start, touched.start);
  found->second.end = std::max(found->second.end, touched.end);
}

// From where to where each tensor of the rank is touched, by start.
std::vector<Touched> extentsOn(const PreparePart& part, const std::vector<PeerPart>& parts) {
  std::map<std::pair<std::int32_t, bool>, Touched> all;
  const MoveTable& sends = part.program->sends;
  for (std::size_t move = 0; move < sends.length; move++) {
    if (sends.stage[move] != 0 || isEmptyMove(sends, move)) continue;
    const std::int64_t start = addressOf(part, part.sources, sends.sourceTensor[move]) + sends.sourceOffset[move];
    const std::int64_t unit = unitBytesOf(sends.transform[move])->source;
    widen(all, {sends.sourceTensor[move], false, start, start + extentOf(sends, move, sends.sourceStrides, unit)});
  }
  for (const PeerPart& peer : parts) {
    for (const WrittenExtent& written : peer.written) {
      // What is not bound is out of bounds for its sender, who says so.
      if (written.receiver != part.rank || !isBound(part.destinations, written.tensor)) continue;
      const std::int64_t base = addressOf(part, part.destinations, written.tensor);
      widen(all, {written.tensor, true, base + written.start, base + written.end});
    }
  }
  std::vector<Touched> sorted;
  for (const auto& [key, touched] : all) sorted.push_back(touched);
  std::stable_sort(sorted.begin(), sorted.end(), [](const Touched& a, const Touched& b) { return a.start < b.start; });
  return sorted;
}

std::vector<TouchedMove> readsOf(const PreparePart& part, std::int32_t tensor) {
  std::vector<TouchedMove> moves;
  const MoveTable& sends = part.program->sends;
  for (std::size_t move = 0; move < sends.length; move++) {
    if (sends.stage[move] != 0 || sends.sourceTensor[move] != tensor || isEmptyMove(sends, move)) continue;
    moves.push_back({addressOf(part, part.sources, tensor) + sends.sourceOffset[move],
                     sends.inner[move] * unitBytesOf(sends.transform[move])->source, loopsOf(sends.counts, move),
                     loopsOf(sends.sourceStrides, move)});
  }
  return moves;
}

// Moves to `rank` by tensor, relative to where the tensor is bound.
std::map<std::int32_t, std::vector<TouchedMove>> movesTo(int rank, const std::vector<Bytes>& moves) {
  std::map<std::int32_t, std::vector<TouchedMove>> byTensor;
  for (const Bytes& bytes : moves) {
    Reader in(bytes);
    const std::int64_t count = in.number();
    for (std::int64_t i = 0; i < count && in.good(); i++) {
      const std::int64_t receiver = in.number(), tensor = in.number();
      TouchedMove move;
      move.start = in.number();
      move.runBytes = in.number();
      for (std::int64_t& value : move.counts) value = in.number();
      for (std::int64_t& value : move.strides) value = in.number();
      if (receiver == rank) byTensor[static_cast<std::int32_t>(tensor)].push_back(move);
    }
  }
  return byTensor;
}

std::string describe(const Touched& touched) {
  return std::string(touched.writes ? "destination" : "source") + " tensor " + std::to_string(touched.tensor);
}

}  // namespace

std::vector<Contest> contestsOn(const PreparePart& part, const std::vector<PeerPart>& parts) {
  std::vector<Contest> contests;
  std::vector<Touched> open;
  for (const Touched& entry : extentsOn(part, parts)) {
    const auto over = [&](const Touched& other) { return other.end <= entry.start; };
    open.erase(std::remove_if(open.begin(), open.end(), over), open.end());
    for (const Touched& other : open) {
      if (entry.writes || other.writes) contests.push_back({other, entry});
    }
    open.push_back(entry);
  }
  return contests;
}

std::vector<std::int32_t> contestedTensors(const std::vector<Contest>& contests) {
  std::set<std::int32_t> tensors;
  for (const Contest& contest : contests) {
    for (const Touched* touched : {&contest.first, &contest.second}) {
      if (touched->writes) tensors.insert(touched->tensor);
    }
  }
  return {tensors.begin(), tensors.end()};
}

Bytes contestedMoves(const PreparePart& part, const std::vector<std::vector<std::int32_t>>& asked) {
  const MoveTable& sends = part.program->sends;
  Writer body;
  std::int64_t count = 0;
  for (std::size_t move = 0; move < sends.length; move++) {
    const auto& tensors = asked[static_cast<std::size_t>(sends.peer[move])];
    if (isEmptyMove(sends, move) || !std::binary_search(tensors.begin(), tensors.end(), sends.tensor[move])) continue;
    count++;
    body.number(sends.peer[move]).number(sends.tensor[move]).number(sends.destinationOffset[move]);
    body.number(sends.inner[move] * unitBytesOf(sends.transform[move])->destination);
    for (const std::int64_t value : loopsOf(sends.counts, move)) body.number(value);
    for (const std::int64_t value : loopsOf(sends.destinationStrides, move)) body.number(value);
  }
  Bytes bytes = Writer().number(count).take();
  const Bytes moves = body.take();
  bytes.insert(bytes.end(), moves.begin(), moves.end());
  return bytes;
}

std::optional<ErrorRecord> overlapProblem(const PreparePart& part, const std::vector<Contest>& contests,
                                          const std::vector<Bytes>& moves) {
  auto written = movesTo(part.rank, moves);
  for (auto& [tensor, list] : written) {
    const std::int64_t base = addressOf(part, part.destinations, tensor);
    for (TouchedMove& move : list) move.start += base;
  }
  const auto movesOf = [&](const Touched& touched) {
    return touched.writes ? written[touched.tensor] : readsOf(part, touched.tensor);
  };
  for (const auto& [first, second] : contests) {
    if (!runsMeet(movesOf(first), movesOf(second))) continue;
    const std::int64_t shared = std::min(first.end, second.end) - std::max(first.start, second.start);
    return fail(ErrorCode::kOverlap, kPrepareOp,
                "on rank " + std::to_string(part.rank) + ", " + describe(first) + " and " + describe(second) +
                    " share bytes")
        .ofRank(part.rank)
        .fromPeer(part.rank)
        .expecting("separate bytes", shared)
        .helped("Bind destinations to memory that no source and no other destination uses.");
  }
  return std::nullopt;
}

}  // namespace nccl_ext
