// SPDX-License-Identifier: Apache-2.0
// Copies by which engines do a move, against the move itself: random shapes, and what is refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "m2n/engine_copies.hpp"
#include "m2n/move_shape.hpp"

namespace nccl_ext {
namespace {

// Source, destination and bytes of each run, cut into pieces of `piece` bytes. Sorted.
using Runs = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

constexpr std::uint64_t kPiece = 1024;

void cut(Runs& runs, std::uint64_t source, std::uint64_t destination, std::uint64_t bytes) {
  for (std::uint64_t at = 0; at < bytes; at += kPiece) runs.emplace_back(source + at, destination + at);
}

Runs runsOfMove(const Move& move) {
  Runs runs;
  for (std::uint64_t run = 0; run < runsOf(move); run++) {
    const std::uint64_t index[3] = {run / (move.counts[1] * move.counts[2]), run / move.counts[2] % move.counts[1],
                                    run % move.counts[2]};
    std::uint64_t source = move.source, destination = move.destination;
    for (std::size_t loop = 0; loop < 3; loop++) {
      source += index[loop] * static_cast<std::uint64_t>(move.sourceStrides[loop]);
      destination += index[loop] * static_cast<std::uint64_t>(move.destinationStrides[loop]);
    }
    cut(runs, source, destination, move.inner);
  }
  std::sort(runs.begin(), runs.end());
  return runs;
}

Runs runsOfCopies(const EngineCopies& copies) {
  Runs runs;
  for (const EngineCopy& copy : copies.copies) {
    for (std::uint64_t plane = 0; plane < copy.planes; plane++) {
      for (std::uint64_t row = 0; row < copy.rows; row++) {
        cut(runs, copy.source + (plane * copy.sourceHeight + row) * copy.sourcePitch,
            copy.destination + (plane * copy.destinationHeight + row) * copy.destinationPitch, copy.width);
      }
    }
  }
  std::sort(runs.begin(), runs.end());
  return runs;
}

Move runOf(std::uint64_t bytes) {
  Move move;
  move.source = 1 << 20;
  move.destination = std::uint64_t{1} << 40;
  move.inner = bytes;
  return move;
}

EngineCopies copiesOf(const std::vector<Move>& moves) {
  std::optional<EngineRefusal> refusal;
  EngineCopies copies = engineCopiesOf(moves, refusal);
  EXPECT_FALSE(refusal) << refusal->reason;
  return copies;
}

std::string refusalOf(const std::vector<Move>& moves, std::size_t move) {
  std::optional<EngineRefusal> refusal;
  EXPECT_TRUE(engineCopiesOf(moves, refusal).copies.empty());
  EXPECT_TRUE(refusal && refusal->move == move);
  return refusal ? refusal->reason : "";
}

TEST(EngineCopies, AreOneForAContiguousRun) {
  Move move = runOf(64);
  // Loops that go on where the run ends, with rows of an odd number of bytes.
  move.inner = 7;
  move.counts = {3, 1, 5};
  move.sourceStrides = move.destinationStrides = {35, 0, 7};
  const EngineCopies copies = copiesOf({move, runOf(0), runOf(3)});
  ASSERT_EQ(copies.copies.size(), 2u);
  EXPECT_EQ(copies.copies[0].width, 105u);
  EXPECT_EQ(copies.bytes, 108u);
}

TEST(EngineCopies, TakeRowsAndPlanesTogether) {
  Move move = runOf(8192);
  move.counts = {2, 3, 4};
  move.sourceStrides = {4 * 5 * 32'768, 5 * 32'768, 32'768};
  move.destinationStrides = {4 * 4 * 16'384, 4 * 16'384, 16'384};
  const EngineCopies copies = copiesOf({move});
  ASSERT_EQ(copies.copies.size(), 2u) << "the outermost loop is repeated, the others are one copy";
  EXPECT_EQ(copies.copies[0].rows, 4u);
  EXPECT_EQ(copies.copies[0].sourceHeight, 5u);
  EXPECT_EQ(runsOfCopies(copies), runsOfMove(move));
}

TEST(EngineCopies, DoWhatRandomMovesDo) {
  std::mt19937 random(7);
  const auto upTo = [&random](std::uint64_t most) {
    return std::uniform_int_distribution<std::uint64_t>(1, most)(random);
  };
  for (int i = 0; i < 500; i++) {
    Move move = runOf(kLeastEngineRun * upTo(2));
    for (auto& count : move.counts) count = upTo(4);
    // Any order of strides, also such that planes lie between rows.
    std::uint64_t source = move.inner, destination = move.inner;
    std::array<std::size_t, 3> order{0, 1, 2};
    std::shuffle(order.begin(), order.end(), random);
    for (const std::size_t loop : order) {
      move.sourceStrides[loop] = static_cast<std::int64_t>(source + kPiece * (upTo(3) - 1));
      source = static_cast<std::uint64_t>(move.sourceStrides[loop]) * move.counts[loop];
    }
    std::shuffle(order.begin(), order.end(), random);
    for (const std::size_t loop : order) {
      move.destinationStrides[loop] = static_cast<std::int64_t>(destination + kPiece * (upTo(3) - 1));
      destination = static_cast<std::uint64_t>(move.destinationStrides[loop]) * move.counts[loop];
    }
    const EngineCopies copies = copiesOf({move});
    ASSERT_EQ(runsOfCopies(copies), runsOfMove(move)) << "move " << i;
    EXPECT_EQ(copies.bytes, runsOf(move) * move.inner);
  }
}

TEST(EngineCopies, CannotConvertAndDoNotTakeShortRuns) {
  Move cast = runOf(1 << 20);
  cast.transform = static_cast<std::uint16_t>(1 + 32 * 0 + 1);
  EXPECT_NE(refusalOf({runOf(1), cast}, 1).find("converted"), std::string::npos);
  Move comb = runOf(kLeastEngineRun - 1);
  comb.counts = {1, 1, 9};
  comb.sourceStrides = comb.destinationStrides = {0, 0, 8192};
  EXPECT_NE(refusalOf({comb}, 0).find("runs of 4095 bytes"), std::string::npos);
  Move apart = runOf(kLeastEngineRun);
  // A pitch that no engine takes: a copy for each run, and too many of them.
  apart.counts = {1, 1, kMostEngineCopies + 1};
  apart.sourceStrides = apart.destinationStrides = {0, 0, std::int64_t{1} << 31};
  EXPECT_NE(refusalOf({apart}, 0).find("more than"), std::string::npos);
  apart.counts[2]--;
  EXPECT_EQ(copiesOf({apart}).copies.size(), kMostEngineCopies);
}

EngineCopies runsOf(const std::vector<std::uint64_t>& bytes) {
  EngineCopies copies;
  for (const std::uint64_t width : bytes) {
    EngineCopy copy;
    copy.width = width;
    copies.copies.push_back(copy);
    copies.bytes += width;
  }
  return copies;
}

TEST(EngineCopies, AreLargeRunsByTheirSumAndMean) {
  EXPECT_FALSE(areLargeRuns({}));
  EXPECT_TRUE(areLargeRuns(runsOf({kLargeEngineBytes})));
  EXPECT_FALSE(areLargeRuns(runsOf({kLargeEngineBytes - 1})));
  EXPECT_TRUE(areLargeRuns(runsOf({1, kLargeEngineBytes - 1})));
  const std::vector<std::uint64_t> most(8, kLargeEngineCopy);
  EXPECT_TRUE(areLargeRuns(runsOf(most)));
  std::vector<std::uint64_t> more = most;
  more.push_back(kLargeEngineCopy - 1);
  EXPECT_FALSE(areLargeRuns(runsOf(more)));
  EngineCopies rows = runsOf({kLargeEngineBytes});
  rows.copies[0].rows = 2;
  EXPECT_FALSE(areLargeRuns(rows));
}

TEST(EngineCopies, BeginWithAnotherReceiverOnEachRank) {
  std::vector<Move> moves;
  for (const int peer : {4, 4, 5, 7, 7, 7}) {
    Move move;
    move.peer = peer;
    move.tensor = static_cast<int>(moves.size());
    moves.push_back(move);
  }
  const auto orderOf = [&moves](int rank) {
    std::vector<int> tensors;
    for (const Move& move : fromOwnPeerOn(moves, rank)) tensors.push_back(move.tensor);
    return tensors;
  };
  EXPECT_EQ(orderOf(0), (std::vector<int>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(orderOf(1), (std::vector<int>{2, 3, 4, 5, 0, 1}));
  EXPECT_EQ(orderOf(2), (std::vector<int>{3, 4, 5, 0, 1, 2}));
  EXPECT_EQ(orderOf(3), orderOf(0));
  EXPECT_TRUE(fromOwnPeerOn({}, 3).empty());
}

}  // namespace
}  // namespace nccl_ext
