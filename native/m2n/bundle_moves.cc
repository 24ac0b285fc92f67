// SPDX-License-Identifier: Apache-2.0
#include "m2n/bundle_moves.hpp"

#include <algorithm>
#include <tuple>

#include "m2n/move_shape.hpp"
#include "m2n/tile_bundles.hpp"

namespace nccl_ext {
namespace {

// Rows of a bundle; with columns they stay below 2^31.
constexpr std::uint64_t kMaxRows = std::uint64_t{1} << 30;
constexpr std::uint64_t kMaxPieces = (std::uint64_t{1} << 31) - 1;

// A move and the widest unit that all its addresses, strides and runs are multiples of.
struct Sized {
  Move move;
  std::uint32_t unit = 1;    // bytes at the source
  std::uint8_t aligned = 1;  // as in Bundle

  auto shape() const { return std::tie(move.transform, unit, aligned, move.inner, move.counts, move.sourceStrides); }
};

Sized sized(const Move& move) {
  std::uint64_t source = move.source, destination = move.destination;
  for (std::size_t loop = 0; loop < move.counts.size(); loop++) {
    source |= static_cast<std::uint64_t>(move.sourceStrides[loop]);
    destination |= static_cast<std::uint64_t>(move.destinationStrides[loop]);
  }
  if (move.transform != 0) {
    const std::uint64_t from = sourceBytes(move), to = destinationBytes(move);
    const bool aligned = source % from == 0 && destination % to == 0;
    return {move, static_cast<std::uint32_t>(from), static_cast<std::uint8_t>(aligned)};
  }
  const std::uint64_t bits = source | destination | move.inner | 16;
  return {move, static_cast<std::uint32_t>(bits & (~bits + 1)), 1};
}

// Bytes from a row to the next one of the innermost loop that is used, 0 without loops: columns lie within it.
std::uint64_t rowPitch(const Move& move) {
  return static_cast<std::uint64_t>(move.counts[2] > 1 ? move.sourceStrides[2]
                                                       : std::max(move.sourceStrides[1], move.sourceStrides[0]));
}

// Moves [first, end) of one bundle: whole columns of `copies` moves each.
struct Group {
  std::size_t first, end, copies;
};

// Moves from `first` on that read the same bytes.
std::size_t copiesAt(const std::vector<Sized>& moves, std::size_t first) {
  std::size_t end = first + 1;
  while (end < moves.size() && end - first < kMaxMembers && moves[end].move.source == moves[first].move.source &&
         moves[end].shape() == moves[first].shape()) {
    end++;
  }
  return end - first;
}

// `moves` are sorted by shape and source.
Group groupAt(const std::vector<Sized>& moves, std::size_t first) {
  const Move& head = moves[first].move;
  const std::size_t copies = copiesAt(moves, first);
  const std::uint64_t bytes = head.inner * sourceBytes(head), rows = runsOf(head);
  Group group{first, first + copies, copies};
  while (group.end < moves.size() && group.end + copies - first <= kMaxMembers) {
    const Sized& next = moves[group.end];
    const std::uint64_t columns = (group.end - first) / copies;
    const bool inRow = next.move.source >= moves[group.end - 1].move.source + bytes &&
                       next.move.source + bytes <= head.source + rowPitch(head);
    if (next.shape() != moves[first].shape() || !inRow || rows * (columns + 1) > kMaxPieces) break;
    if (copiesAt(moves, group.end) != copies) break;
    group.end += copies;
  }
  return group;
}

// Pieces that follow each other at the source from a multiple of this number on.
std::uint32_t sourceRunOf(const std::vector<Sized>& moves, const Group& group) {
  const Move& head = moves[group.first].move;
  const std::uint64_t bytes = head.inner * sourceBytes(head), columns = (group.end - group.first) / group.copies;
  for (std::size_t column = 0; column < columns; column++) {
    if (moves[group.first + column * group.copies].move.source != head.source + column * bytes) return 1;
  }
  std::uint64_t run = columns;
  for (std::size_t loop = head.counts.size(); loop-- > 0;) {
    if (head.counts[loop] == 1) continue;
    if (static_cast<std::uint64_t>(head.sourceStrides[loop]) != run * bytes) break;
    run *= head.counts[loop];
  }
  return static_cast<std::uint32_t>(run);
}

Bundle bundleOf(const std::vector<Sized>& moves, const Group& group) {
  const Sized& head = moves[group.first];
  const Move& move = head.move;
  const bool casts = move.transform != 0;
  Bundle bundle;
  bundle.inner = casts ? move.inner : move.inner / head.unit;
  std::copy(move.sourceStrides.begin(), move.sourceStrides.end(), bundle.strides);
  bundle.columns = FastDiv(static_cast<std::uint32_t>((group.end - group.first) / group.copies));
  bundle.pieces = static_cast<std::uint32_t>(runsOf(move)) * bundle.columns.divisor;
  bundle.copies = static_cast<std::uint32_t>(group.copies);
  bundle.loop1 = FastDiv(static_cast<std::uint32_t>(move.counts[1]));
  bundle.loop2 = FastDiv(static_cast<std::uint32_t>(move.counts[2]));
  bundle.sourceRun = FastDiv(sourceRunOf(moves, group));
  bundle.transform = move.transform;
  bundle.sourceUnit = static_cast<std::uint8_t>(head.unit);
  bundle.destinationUnit = static_cast<std::uint8_t>(casts ? destinationBytes(move) : head.unit);
  bundle.aligned = head.aligned;
  return bundle;
}

Member memberOf(const Move& move) {
  Member member;
  member.source = move.source;
  member.destination = move.destination;
  std::copy(move.destinationStrides.begin(), move.destinationStrides.end(), member.strides);
  member.peer = move.peer;
  return member;
}

bool fitsBulk(const Bundle& bundle) {
  return bundle.transform == 0 && bundle.sourceUnit == kBulkUnitBytes && bundle.inner * kBulkUnitBytes >= kMinBulkRun;
}

bool fitsStaged(const Bundle& bundle) {
  return bundle.transform == 0 && bundle.inner * bundle.sourceUnit * bundle.sourceRun.divisor >= kMinStagedRun;
}

void collectPeers(const std::vector<Sized>& moves, std::vector<std::int32_t>& peers) {
  for (const Sized& entry : moves) peers.push_back(entry.move.peer);
  std::sort(peers.begin(), peers.end());
  peers.erase(std::unique(peers.begin(), peers.end()), peers.end());
}

}  // namespace

StageProgram bundleMoves(const std::vector<Move>& given, const StageLimits& limits) {
  std::vector<Sized> moves;
  for (const Move& move : shapeMoves(given, kMaxRows)) moves.push_back(sized(move));
  std::stable_sort(moves.begin(), moves.end(), [](const Sized& a, const Sized& b) {
    return std::tuple_cat(a.shape(), std::tie(a.move.source)) < std::tuple_cat(b.shape(), std::tie(b.move.source));
  });
  std::vector<Group> groups;
  for (std::size_t first = 0; first < moves.size(); first = groups.back().end) groups.push_back(groupAt(moves, first));
  // CTAs walk the source from its first byte to its last.
  std::stable_sort(groups.begin(), groups.end(), [&](const Group& a, const Group& b) {
    return moves[a.first].move.source < moves[b.first].move.source;
  });

  StageProgram program;
  collectPeers(moves, program.peers);
  for (const Group& group : groups) {
    Bundle bundle = bundleOf(moves, group);
    bundle.firstMember = static_cast<std::uint32_t>(program.members.size());
    for (std::size_t i = group.first; i < group.end; i++) program.members.push_back(memberOf(moves[i].move));
    program.writtenBytes += writtenBytesOf(bundle);
    bundle.staged = limits.bulk && !fitsBulk(bundle) && fitsStaged(bundle) ? 1 : 0;
    StagePart& part = limits.bulk && (bundle.staged != 0 || fitsBulk(bundle)) ? program.bulk : program.vector;
    program.lanes = program.lanes || !limits.bulk || !fitsBulk(bundle);
    part.bundles.push_back(bundle);
  }
  cutTiles(program, limits.ctas);
  return program;
}

}  // namespace nccl_ext
