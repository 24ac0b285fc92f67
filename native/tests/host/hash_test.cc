// SPDX-License-Identifier: Apache-2.0
// Sums of random moves, by the tiles and slots that kernels read, against the definition byte by byte.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "m2n/hash_tiles.hpp"
#include "tests/support/hash_sides.hpp"

namespace nccl_ext::test {
namespace {

HashList listOf(const std::vector<HashSide>& sides, int sms) {
  HashList list;
  for (const HashSide& side : sides) addSide(side, list.moves);
  cutHashTiles(list, sms);
  return list;
}

std::vector<std::uint64_t> sumsOf(const HashList& list, std::size_t groups) {
  std::vector<std::uint64_t> sums(groups);
  for (std::size_t i = 0; i < list.moves.size(); i++) {
    const std::uint32_t end = i + 1 < list.moves.size() ? list.firstTiles[i + 1] : list.tiles;
    for (std::uint32_t tile = list.firstTiles[i]; tile < end; tile++)
      sums[list.moves[i].group] += sumTile(list.moves[i], hashSpanOf(list.moves[i], tile - list.firstTiles[i]));
  }
  return sums;
}

std::uint64_t sumOf(const HashSide& side, int sms = 1) {
  return sumsOf(listOf({side}, sms), side.group + 1)[side.group];
}

TEST(Hash, SumsWhatTheDefinitionSays) {
  Random random{std::mt19937_64(7)};
  std::set<HashPath> paths;
  for (int round = 0; round < 150; round++) {
    Bytes memory;
    const HashSide side = randomSide(random, memory);
    const int sms = static_cast<int>(1 + random.pick(4));
    ASSERT_EQ(sumOf(side, sms), oracle(side)) << "round " << round << ", inner " << side.inner << ", transform "
                                              << side.transform << ", at " << side.address % 16;
    paths.insert(listOf({side}, sms).moves[0].path);
  }
  EXPECT_EQ(paths.size(), 4u);
}

TEST(Hash, SumsGroupsApart) {
  Random random{std::mt19937_64(8)};
  std::vector<Bytes> memories(60);
  std::vector<HashSide> sides;
  std::vector<std::uint64_t> expected(20);
  for (std::size_t i = 0; i < memories.size(); i++) {
    HashSide side = randomSide(random, memories[i]);
    side.group = static_cast<std::uint32_t>(i / 3);
    side.number = i % 3 == 0 ? 0 : sides.back().number + wordsOf(sides.back());
    expected[side.group] += oracle(side);
    sides.push_back(side);
  }
  EXPECT_EQ(sumsOf(listOf(sides, 3), expected.size()), expected);
}

// Both ends of a transfer: equal words, whatever the alignment, the loops that could be merged and the conversion.
TEST(Hash, SumsAlikeAtBothEnds) {
  Random random{std::mt19937_64(9)};
  for (int round = 0; round < 100; round++) {
    Bytes source;
    const HashSide sent = randomSide(random, source);
    Bytes arrived(3);
    HashSide received = sent;
    received.transform = 0;
    received.unit = sent.wordUnit;
    for (std::uint64_t run = 0; run < runsOf(sent); run++) {
      const Bytes bytes = runBytes(sent, placeOf(sent, run));
      arrived.insert(arrived.end(), bytes.begin(), bytes.end());
    }
    received.address = at(arrived) + 3;
    std::uint64_t stride = sent.inner * sent.wordUnit;
    for (std::size_t loop = kMoveLoops; loop-- > 0;) {
      received.strides[loop] = static_cast<std::int64_t>(stride);
      stride *= sent.counts[loop];
    }
    ASSERT_EQ(sumOf(received), sumOf(sent)) << "round " << round;
  }
}

TEST(Hash, CatchesWhatGoesWrong) {
  Bytes memory(1024);
  Random random{std::mt19937_64(10)};
  for (std::uint8_t& byte : memory) byte = static_cast<std::uint8_t>(random.engine());
  HashSide side;
  side.address = at(memory);
  side.inner = 40;
  side.counts[2] = 25;
  side.strides[2] = 40;
  const std::uint64_t right = sumOf(side);
  for (std::size_t bit = 0; bit < 8 * 1000; bit++) {
    memory[bit / 8] ^= static_cast<std::uint8_t>(1 << (bit % 8));
    ASSERT_NE(sumOf(side), right) << "bit " << bit;
    memory[bit / 8] ^= static_cast<std::uint8_t>(1 << (bit % 8));
  }
  const auto swapped = [&](std::size_t a, std::size_t b, std::size_t bytes) {
    std::swap_ranges(&memory[a], &memory[a] + bytes, &memory[b]);
    const std::uint64_t sum = sumOf(side);
    std::swap_ranges(&memory[a], &memory[a] + bytes, &memory[b]);
    return sum;
  };
  for (std::size_t word = 1; word < 125; word++) EXPECT_NE(swapped(0, 8 * word, 8), right) << "word " << word;
  for (std::size_t run = 1; run < 25; run++) EXPECT_NE(swapped(0, 40 * run, 40), right) << "run " << run;
  // Words that differ in their highest bit alone.
  std::memcpy(&memory[80], &memory[0], 8);
  memory[87] ^= 0x80;
  const std::uint64_t alike = sumOf(side);
  EXPECT_NE(swapped(0, 80, 8), alike);
  // A run at the place of another one, and one that never came.
  Bytes before = memory;
  std::memcpy(&memory[400], &memory[440], 40);
  EXPECT_NE(sumOf(side), alike);
  memory = before;
  side.address = at(memory);
  std::fill_n(&memory[400], 40, std::uint8_t{0});
  EXPECT_NE(sumOf(side), alike);
}

// Beyond 32 bits, by arithmetic: nothing is read.
TEST(Hash, CutsWhatNoMemoryHolds) {
  HashSide side;
  side.address = 0x7000'0000'0005;
  side.inner = (std::uint64_t{5} << 32) + 3;
  const HashList one = listOf({side}, 28);
  ASSERT_EQ(one.moves.size(), 1u);
  const HashMove& move = one.moves[0];
  EXPECT_EQ(move.runWords, (std::uint64_t{5} << 29) + 1);
  std::uint64_t slots = 0;
  for (const std::uint32_t tile : {0u, 1u, one.tiles / 2, one.tiles - 1}) {
    const HashSpan span = hashSpanOf(move, tile);
    EXPECT_EQ(span.firstSlot, std::uint64_t{tile} * move.segmentSlots);
    EXPECT_EQ(span.runs, 1u);
    slots = span.firstSlot + span.slots;
  }
  EXPECT_EQ(slots, move.slots);
  EXPECT_EQ(slots, (5 + 8 * (move.runWords - 1)) / 16 + 1);

  // 6 x 2^30 runs of 5 bytes with a gap: in parts whose words number on.
  side.inner = 5;
  side.counts = {6, 1 << 15, 1 << 15};
  side.strides = {std::int64_t{1} << 40, std::int64_t{1} << 20, 7};
  const HashList parts = listOf({side}, 28);
  std::uint64_t number = 0;
  for (const HashMove& part : parts.moves) {
    EXPECT_LE(part.runs, 1u << 30);
    EXPECT_EQ(part.number, number);
    EXPECT_EQ(part.address, side.address + (number >> 30 << 40));
    EXPECT_EQ(runAddress(part, part.runs - 1), part.end - 5);
    number += part.runs * part.runWords;
  }
  EXPECT_EQ(number, std::uint64_t{6} << 30);
}

TEST(Hash, MergesWhatFollowsWithoutAGap) {
  HashSide side;
  side.address = 0x1000;
  side.inner = 256;
  side.counts = {4, 8, 16};
  side.strides = {256 * 16 * 8, 256 * 16, 256};
  const HashMove one = listOf({side}, 1).moves[0];
  EXPECT_EQ(one.inner, 256u * 16 * 8 * 4);
  EXPECT_EQ(one.path, HashPath::kVectors);
  // Runs of words that are not whole stay apart, but their loops become one.
  side.inner = 3;
  side.strides = {3 * 16 * 8, 3 * 16, 3};
  const HashMove many = listOf({side}, 1).moves[0];
  EXPECT_EQ(many.inner, 3u);
  EXPECT_EQ(many.loop2.divisor, 16u * 8 * 4);
}

}  // namespace
}  // namespace nccl_ext::test
