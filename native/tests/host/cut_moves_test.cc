// SPDX-License-Identifier: Apache-2.0
// Moves cut at any unit against all of their units, one by one; rounds within their bounds.
#include "m2n/cut_moves.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "generated/contract.hpp"
#include "m2n/move_shape.hpp"
#include "m2n/staging_rounds.hpp"

namespace nccl_ext {
namespace {

using Units =
    std::vector<std::pair<std::uint64_t, std::uint64_t>>;  // source and destination, in the order of the loops

Units unitsOf(const Move& move) {
  Units units;
  for (std::uint64_t run = 0; run < runsOf(move); run++) {
    const std::uint64_t index[3] = {run / (move.counts[1] * move.counts[2]), run / move.counts[2] % move.counts[1],
                                    run % move.counts[2]};
    std::uint64_t source = move.source, destination = move.destination;
    for (std::size_t loop = 0; loop < 3; loop++) {
      source += index[loop] * static_cast<std::uint64_t>(move.sourceStrides[loop]);
      destination += index[loop] * static_cast<std::uint64_t>(move.destinationStrides[loop]);
    }
    for (std::uint64_t i = 0; i < move.inner; i++)
      units.emplace_back(source + i * sourceBytes(move), destination + i * destinationBytes(move));
  }
  return units;
}

Move randomMove(std::mt19937& random) {
  Move move;
  move.transform = random() % 3 == 0 ? castTransform(DType::kF32, DType::kBf16) : std::uint16_t{0};
  move.source = random() % 64;
  move.destination = 1'000'000 + random() % 64;
  move.inner = 1 + random() % 9;
  for (std::size_t loop = 0; loop < 3; loop++) {
    move.counts[loop] = 1 + random() % 5;
    move.sourceStrides[loop] = static_cast<std::int64_t>(random() % 1000);
    move.destinationStrides[loop] = static_cast<std::int64_t>(random() % 1000);
  }
  return move;
}

TEST(CutMoves, DoExactlyTheUnitsInBetween) {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; round++) {
    const Move move = randomMove(random);
    const Units all = unitsOf(move);
    const std::uint64_t first = random() % (all.size() + 1), end = first + random() % (all.size() - first + 1);
    std::vector<Move> cut;
    cutMove(move, first, end, cut);
    ASSERT_LE(cut.size(), 7u);
    Units seen;
    for (const Move& one : cut) {
      EXPECT_EQ(one.transform, move.transform);
      const Units units = unitsOf(one);
      seen.insert(seen.end(), units.begin(), units.end());
    }
    ASSERT_EQ(seen,
              Units(all.begin() + static_cast<std::ptrdiff_t>(first), all.begin() + static_cast<std::ptrdiff_t>(end)));
  }
}

TEST(CutMoves, KeepLoopsWhole) {
  Move move;
  move.inner = 4;
  move.counts = {2, 3, 5};
  std::vector<Move> cut;
  cutMove(move, 0, 120, cut);
  ASSERT_EQ(cut.size(), 1u);
  EXPECT_EQ(cut[0].counts, move.counts);
}

TEST(CutMoves, StayExactBeyond32Bits) {
  Move move;
  move.inner = std::uint64_t{3} << 33;
  move.counts = {1, 1, 2};
  move.sourceStrides = {0, 0, std::int64_t{1} << 36};
  std::vector<Move> cut;
  cutMove(move, (std::uint64_t{3} << 33) - 1, (std::uint64_t{3} << 33) + 1, cut);
  ASSERT_EQ(cut.size(), 2u);
  EXPECT_EQ(cut[0].source, (std::uint64_t{3} << 33) - 1);
  EXPECT_EQ(cut[1].source, std::uint64_t{1} << 36);
  EXPECT_EQ(cut[1].inner, 1u);
}

TEST(CutMoves, DenseStridesFollowEachOther) {
  Move move;
  move.inner = 3;
  move.counts = {2, 4, 5};
  EXPECT_EQ(denseStrides(move, 2), (std::array<std::int64_t, 3>{120, 30, 6}));
}

TEST(StagingRounds, BoundStagingAndRounds) {
  std::mt19937_64 random(11);
  const StagingLimits limits{1 << 20, 64};
  for (int round = 0; round < 300; round++) {
    std::vector<PairStream> pairs;
    const int ranks = 2 + static_cast<int>(random() % 7);
    for (int sender = 0; sender < ranks; sender++) {
      for (int receiver = 0; receiver < ranks; receiver++) {
        if (sender == receiver || random() % 3 == 0) continue;
        pairs.push_back({sender, receiver, 1 + random() % (std::uint64_t{1} << (random() % 40)), 0});
      }
    }
    cutRounds(pairs, limits);
    std::map<std::pair<bool, int>, std::uint64_t> staged, moved, peers;
    for (const PairStream& pair : pairs) {
      EXPECT_EQ(pair.chunk % kChunkAlignment, 0u);
      EXPECT_GE(pair.chunk * pair.rounds(), pair.bytes);
      EXPECT_LE(pair.rounds(), limits.rounds);
      for (const auto& side : {std::pair{true, pair.sender}, std::pair{false, pair.receiver}}) {
        staged[side] += pair.chunk;
        moved[side] += pair.bytes;
        peers[side]++;
      }
    }
    for (const auto& [side, bytes] : staged) {
      const std::uint64_t most = std::max(limits.bytes, moved[side] / limits.rounds + 1);
      EXPECT_LE(bytes, most + peers[side] * kChunkAlignment + peers[side]);
    }
  }
}

TEST(StagingRounds, TakeOneRoundForLittle) {
  std::vector<PairStream> pairs = {{0, 1, 1, 0}, {1, 0, 1000, 0}, {2, 0, 0, 0}};
  cutRounds(pairs, {});
  EXPECT_EQ(pairs[0].rounds(), 1u);
  EXPECT_EQ(pairs[1].chunk, 1024u);
  EXPECT_EQ(pairs[2].rounds(), 0u);
}

}  // namespace
}  // namespace nccl_ext
