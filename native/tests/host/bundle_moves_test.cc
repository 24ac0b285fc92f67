// SPDX-License-Identifier: Apache-2.0
// Bundles and tiles of random moves, expanded byte by byte with the code that kernels use, against the moves themselves.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "m2n/move_shape.hpp"
#include "m2n/program_image.hpp"
#include "m2n/shared/cast.hpp"
#include "m2n/shared/piece.hpp"
#include "m2n/shared/staged.hpp"

namespace nccl_ext {
namespace {

// Destination, peer and source of each unit: a byte, or an element that converts. Sorted.
using Copies = std::vector<std::tuple<std::uint64_t, std::int32_t, std::uint64_t>>;

void expandRun(Copies& copies, std::int32_t peer, std::uint64_t source, std::uint64_t destination, std::uint64_t units,
               std::uint64_t sourceUnit, std::uint64_t destinationUnit) {
  for (std::uint64_t i = 0; i < units; i++)
    copies.emplace_back(destination + i * destinationUnit, peer, source + i * sourceUnit);
}

Copies expand(const std::vector<Move>& moves) {
  Copies copies;
  for (const Move& move : moves) {
    for (std::uint64_t run = 0; run < runsOf(move); run++) {
      const std::uint64_t index[3] = {run / (move.counts[1] * move.counts[2]), run / move.counts[2] % move.counts[1],
                                      run % move.counts[2]};
      std::uint64_t source = move.source, destination = move.destination;
      for (std::size_t loop = 0; loop < 3; loop++) {
        source += index[loop] * static_cast<std::uint64_t>(move.sourceStrides[loop]);
        destination += index[loop] * static_cast<std::uint64_t>(move.destinationStrides[loop]);
      }
      expandRun(copies, move.peer, source, destination, move.inner, sourceBytes(move), destinationBytes(move));
    }
  }
  std::sort(copies.begin(), copies.end());
  return copies;
}

void expandTile(Copies& copies, const TransferWork& work, const Bundle& bundle, std::uint32_t tile) {
  const TileSpan span = spanOf(bundle, tile);
  const bool casts = bundle.transform != 0;
  for (std::uint32_t i = 0; i < span.pieces; i++) {
    const Place place = placeOf(bundle, span.firstPiece + i);
    for (std::uint32_t copy = 0; copy < bundle.copies; copy++) {
      const Member& member = work.members[bundle.firstMember + place.column * bundle.copies + copy];
      const std::uint64_t source = member.source + distanceTo(place, bundle.strides) + span.offset * bundle.sourceUnit;
      const std::uint64_t destination =
          member.destination + distanceTo(place, member.strides) + span.offset * bundle.destinationUnit;
      if (!casts) {
        EXPECT_EQ(source % bundle.sourceUnit, 0u);
        EXPECT_EQ(destination % bundle.sourceUnit, 0u);
      }
      const std::uint64_t units = casts ? span.units : std::uint64_t{span.units} * bundle.sourceUnit;
      expandRun(copies, member.peer, source, destination, units, casts ? bundle.sourceUnit : 1,
                casts ? bundle.destinationUnit : 1);
    }
  }
}

// Source of each byte of the stage after the words of a tile's runs came; 0: nothing came.
std::vector<std::uint64_t> loadStage(const Bundle& bundle, const Member* members, const TileSpan& span) {
  std::vector<std::uint64_t> stage(bulkTileBytes(true));
  std::uint32_t piece = span.firstPiece;
  for (std::uint32_t number = 0; number < stagedRuns(bundle, span); number++) {
    const StagedRun run = stagedRun(bundle, span, number);
    EXPECT_EQ(run.firstPiece, piece);
    EXPECT_EQ(run.slot % kBulkUnitBytes, 0u);
    piece += run.pieces;
    const std::uint64_t from = sourceOf(bundle, members, span, run.firstPiece);
    const std::uint64_t end = from + std::uint64_t{run.pieces} * span.units * bundle.sourceUnit;
    std::uint64_t at = run.slot;
    for (std::uint64_t byte = from / 16 * 16; byte < (end + 15) / 16 * 16; byte++, at++) {
      if (at >= stage.size() || stage[at] != 0) {
        ADD_FAILURE() << "byte " << at << " of a stage does not exist or came twice";
        return stage;
      }
      stage[at] = byte;
    }
  }
  EXPECT_EQ(piece, span.firstPiece + span.pieces);
  return stage;
}

// What lanes take from a stage is what the tile's pieces say.
void checkStaged(const TransferWork& work, const Bundle& bundle, std::uint32_t tile) {
  const TileSpan span = spanOf(bundle, tile);
  const Member* const members = work.members + bundle.firstMember;
  const std::vector<std::uint64_t> stage = loadStage(bundle, members, span);
  const std::uint32_t bytes = span.units * bundle.sourceUnit;
  Copies taken, expected;
  eachBlock(bundle, members, span, [&](const Block& block) {
    EXPECT_TRUE(block.rows == 1 || block.rowPitch >= block.columns * bytes);
    for (std::uint32_t column = 0; column < block.columns; column++) {
      for (std::uint32_t copy = 0; copy < bundle.copies; copy++) {
        const Member& member = members[(block.first.column + column) * bundle.copies + copy];
        const std::uint64_t to = destinationOf(bundle, block, member, span);
        for (std::uint32_t row = 0; row < block.rows; row++) {
          const std::uint32_t at = block.stage + row * block.rowPitch + column * block.columnPitch;
          for (std::uint32_t i = 0; i < bytes; i++)
            taken.emplace_back(to + row * static_cast<std::uint64_t>(member.strides[2]) + i, 0, stage.at(at + i));
        }
      }
    }
  });
  expandTile(expected, work, bundle, tile);
  for (auto& copy : expected) std::get<1>(copy) = 0;
  std::sort(taken.begin(), taken.end());
  std::sort(expected.begin(), expected.end());
  ASSERT_TRUE(taken == expected) << "tile " << tile << " of " << bundle.tiles << ", " << bundle.pieces << " pieces of "
                                 << bundle.inner << " x " << int{bundle.sourceUnit};
}

void expandPart(Copies& copies, const TransferWork& work, const PartWork& part) {
  std::uint32_t at = 0;
  for (std::uint32_t tile = 0; tile < part.tiles; tile++) {
    while (at + 1 < part.bundleCount && part.firstTiles[at + 1] <= tile) at++;
    ASSERT_LT(tile - part.firstTiles[at], part.bundles[at].tiles);
    expandTile(copies, work, part.bundles[at], tile - part.firstTiles[at]);
    if (part.bundles[at].staged != 0) checkStaged(work, part.bundles[at], tile - part.firstTiles[at]);
  }
}

Copies expand(const StageProgram& program) {
  const ProgramImage image = imageOf(program);
  const TransferWork work = workAt(image, image.bytes.data());
  Copies copies;
  expandPart(copies, work, work.bulk);
  expandPart(copies, work, work.vector);
  std::sort(copies.begin(), copies.end());
  return copies;
}

// The tensors of a source rank, cut among peers by random columns, at random alignment; some columns twice.
std::vector<Move> randomMoves(std::mt19937& random) {
  const auto pick = [&](std::uint64_t below) { return random() % below; };
  std::vector<Move> moves;
  std::uint64_t source = 1 << 20, destination = 1 << 24;
  for (std::uint64_t tensor = 1 + pick(4); tensor-- > 0;) {
    const std::uint64_t unit = std::uint64_t{1} << pick(6), columns = 1 + pick(5);
    const std::uint16_t transform = pick(4) == 0 ? castTransform(DType::kF32, DType::kBf16) : std::uint16_t{0};
    const std::uint64_t from = transform == 0 ? 1 : 4, to = transform == 0 ? 1 : 2;
    const std::uint64_t inner = unit * (1 + pick(pick(3) == 0 ? 300 : 8));
    const std::uint64_t pitch = columns * inner * from + (pick(2) == 0 ? 0 : unit * pick(5));
    const std::array<std::uint64_t, 3> counts{1 + pick(3), 1 + pick(2) * pick(4), 1 + pick(9)};
    source += pick(3) == 0 ? pick(16) : 16 * pick(4);
    for (std::uint64_t column = 0; column < columns; column++) {
      if (pick(8) == 0) continue;
      for (std::uint64_t copy = 1 + pick(4) / 3; copy-- > 0;) {
        Move move;
        move.peer = static_cast<std::int32_t>(pick(4));
        move.transform = transform;
        move.source = source + column * inner * from;
        move.inner = inner;
        move.counts = counts;
        move.sourceStrides = {static_cast<std::int64_t>(pitch * counts[1] * counts[2]),
                              static_cast<std::int64_t>(pitch * counts[2]), static_cast<std::int64_t>(pitch)};
        const std::uint64_t row = inner * to + (pick(2) == 0 ? 0 : pick(3) * unit);
        move.destination = destination += pick(3) == 0 ? pick(16) : 0;
        move.destinationStrides = {static_cast<std::int64_t>(row * counts[1] * counts[2]),
                                   static_cast<std::int64_t>(row * counts[2]), static_cast<std::int64_t>(row)};
        destination = (destination + row * runsOf(move) + 127) / 128 * 128;
        moves.push_back(move);
      }
    }
    source = (source + pitch * counts[0] * counts[1] * counts[2] + 127) / 128 * 128;
  }
  std::shuffle(moves.begin(), moves.end(), random);
  return moves;
}

Move run(std::uint64_t source, std::uint64_t destination, std::uint64_t inner, std::int32_t peer = 1) {
  Move move;
  move.peer = peer;
  move.source = source;
  move.destination = destination;
  move.inner = inner;
  return move;
}

TEST(BundleMoves, CopiesEveryByteOfRandomMovesOnce) {
  std::mt19937 random(7);
  for (int round = 0; round < 40; round++) {
    const std::vector<Move> moves = randomMoves(random);
    const StageLimits limits{static_cast<std::int32_t>(1 + random() % 9), random() % 2 == 0};
    const StageProgram program = bundleMoves(moves, limits);
    ASSERT_LE(program.ctas, limits.ctas);
    ASSERT_TRUE(limits.bulk || program.bulk.bundles.empty());
    const Copies expected = expand(moves);
    ASSERT_TRUE(expand(program) == expected) << "round " << round;
    std::uint64_t bytes = 0;
    for (const Move& move : moves) bytes += move.inner * destinationBytes(move) * runsOf(move);
    ASSERT_EQ(program.writtenBytes, bytes);
  }
}

TEST(BundleMoves, ReadsRowsOnceForAllColumns) {
  std::vector<Move> moves;
  for (std::uint64_t column = 0; column < 4; column++) {
    Move move = run(4096 + column * 256, (column + 1) << 24, 256, static_cast<std::int32_t>(column));
    move.counts[2] = 1000;
    move.sourceStrides[2] = 1024;
    move.destinationStrides[2] = 256;
    moves.push_back(move);
  }
  const StageProgram program = bundleMoves(moves, {8, true});
  ASSERT_EQ(program.bulk.bundles.size(), 1u);
  const Bundle& bundle = program.bulk.bundles[0];
  EXPECT_EQ(bundle.columns.divisor, 4u);
  EXPECT_EQ(bundle.sourceRun.divisor, 4000u);
  EXPECT_EQ(program.peers, (std::vector<std::int32_t>{0, 1, 2, 3}));
}

TEST(BundleMoves, ReadsOnceForAllReplicas) {
  const StageProgram program = bundleMoves({run(4096, 1 << 24, 1 << 16, 1), run(4096, 1 << 25, 1 << 16, 2)}, {8, true});
  ASSERT_EQ(program.bulk.bundles.size(), 1u);
  EXPECT_EQ(program.bulk.bundles[0].copies, 2u);
  EXPECT_EQ(program.writtenBytes, 2u << 16);
}

TEST(BundleMoves, TakesTheWidestUnitThatFitsAllAddresses) {
  const auto unitOf = [](const Move& move) {
    const StageProgram program = bundleMoves({move}, {1, false});
    return static_cast<int>(program.vector.bundles.at(0).sourceUnit);
  };
  EXPECT_EQ(unitOf(run(4096, 8192, 4096)), 16);
  EXPECT_EQ(unitOf(run(4096, 8200, 4096)), 8);
  EXPECT_EQ(unitOf(run(4096, 8192, 4094)), 2);
  EXPECT_EQ(unitOf(run(4097, 8193, 4096)), 1);
}

TEST(BundleMoves, GivesFewBytesFewCtasAndEveryWarpTiles) {
  EXPECT_EQ(bundleMoves({run(4096, 1 << 24, 100)}, {32, true}).ctas, 1);
  EXPECT_EQ(bundleMoves({}, {32, true}).ctas, 1);
  const StageProgram large = bundleMoves({run(4096, std::uint64_t{1} << 40, std::uint64_t{1} << 30)}, {32, true});
  EXPECT_EQ(large.ctas, 32);
  EXPECT_EQ(large.bulk.tiles, (std::uint32_t{1} << 30) / bulkTileBytes(false));
  const StageProgram small = bundleMoves({run(4096, std::uint64_t{1} << 40, 1 << 20)}, {32, true});
  EXPECT_GE(small.bulk.tiles, static_cast<std::uint32_t>(small.ctas) * kWarps);
}

TEST(BundleMoves, TakesSeveralTilesAtATimeWhereThereAreMany) {
  const auto grabOf = [](std::uint64_t bytes, std::uint64_t piece) {
    Move move = run(4096, std::uint64_t{1} << 40, piece);
    move.counts[2] = bytes / piece;
    move.sourceStrides[2] = static_cast<std::int64_t>(piece);
    move.destinationStrides[2] = static_cast<std::int64_t>(2 * piece);
    return bundleMoves({move}, {8, true}).bulk.grab;
  };
  EXPECT_EQ(grabOf(1 << 20, 8192), 1u);
  EXPECT_EQ(grabOf(1 << 28, 8192), 2u);
  EXPECT_EQ(grabOf(1 << 28, 256), 4u);
}

TEST(BundleMoves, StoresByLanesWhatTheEngineCannot) {
  const auto programOf = [](const Move& move, bool bulk) { return bundleMoves({move}, {1, bulk}); };
  EXPECT_FALSE(programOf(run(4096, 8192, 1024), true).lanes);
  const StageProgram shifted = programOf(run(4097, 8192, 1024), true);
  ASSERT_EQ(shifted.bulk.bundles.size(), 1u);
  EXPECT_TRUE(shifted.lanes && shifted.bulk.bundles[0].staged != 0);
  EXPECT_EQ(programOf(run(4097, 8192, 100), true).vector.bundles.size(), 1u);
  EXPECT_EQ(programOf(run(4096, 8192, 1024), false).vector.bundles.size(), 1u);
}

TEST(BundleMoves, SplitsWhatIndicesOf32BitsCannotReach) {
  Move move = run(0, 0, 1);
  move.counts = {3, 1 << 20, 1 << 20};
  move.sourceStrides = {std::int64_t{1} << 46, std::int64_t{1} << 24, 3};
  move.destinationStrides = {std::int64_t{1} << 47, std::int64_t{1} << 25, 5};
  const std::vector<Move> parts = shapeMoves({move}, std::uint64_t{1} << 30);
  std::uint64_t runs = 0;
  for (const Move& part : parts) {
    EXPECT_LE(runsOf(part), std::uint64_t{1} << 30);
    runs += runsOf(part);
  }
  EXPECT_EQ(runs, runsOf(move));
  for (const Bundle& bundle : bundleMoves({move}, {4, false}).vector.bundles) {
    EXPECT_LT(bundle.pieces, std::uint32_t{1} << 31);
    EXPECT_LT(bundle.tiles, std::uint32_t{1} << 31);
  }
}

TEST(FastDiv, EqualsDivision) {
  std::mt19937 random(11);
  for (int round = 0; round < 200'000; round++) {
    const auto divisor = static_cast<std::uint32_t>(1 + (random() >> (random() % 31)) % 0x7fff'ffff);
    const auto dividend = static_cast<std::uint32_t>((random() >> (random() % 31)) & 0x7fff'ffff);
    ASSERT_EQ(FastDiv(divisor).quotient(dividend), dividend / divisor) << dividend << " / " << divisor;
  }
}

}  // namespace
}  // namespace nccl_ext
