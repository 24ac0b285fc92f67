// SPDX-License-Identifier: Apache-2.0
// The kernels that hash a verified transfer, against sums byte by byte.
#include <gtest/gtest.h>

#include "tests/gpu/m2n/hash_lists.cuh"

namespace nccl_ext::test {
namespace {

Bytes randomBytes(Random& random, std::size_t count) {
  Bytes bytes(count);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random.engine());
  return bytes;
}

TEST(SimtHash, SumsRandomMoves) {
  for (unsigned round = 0; round < 40; round++) {
    simt::machine().reset(round);
    Random random{std::mt19937_64(500 + round)};
    std::vector<Bytes> memories(1 + random.pick(20));
    std::vector<HashSide> sides;
    for (std::size_t i = 0; i < memories.size(); i++) {
      do {
        if (sides.size() > i) sides.pop_back();
        sides.push_back(randomSide(random, memories[i]));
      } while (memories[i].size() > 200'000);
      sides.back().group = static_cast<std::uint32_t>(i / 3);
    }
    ASSERT_TRUE(sumsAsOracle(memories, sides, static_cast<int>(1 + random.pick(4)))) << "round " << round;
  }
}

// In memory that ends where the run does, at every place within a vector; some longer than a tile.
TEST(SimtHash, SumsRunsOfEveryLengthAndAlignment) {
  for (std::uint64_t skew = 0; skew < 16; skew++) {
    simt::machine().reset(skew);
    Random random{std::mt19937_64(skew)};
    std::vector<Bytes> memories;
    std::vector<HashSide> sides;
    for (std::uint64_t run = 1; run <= 300; run++) {
      for (const std::uint64_t factor : {1u, 23u, 211u}) {
        if (factor > 1 && run % (factor == 23 ? 2 : 16) != skew % (factor == 23 ? 2 : 16)) continue;
        memories.push_back(randomBytes(random, skew + run * factor));
        HashSide side;
        side.inner = run * factor;
        side.group = static_cast<std::uint32_t>(sides.size());
        sides.push_back(side);
      }
    }
    for (std::size_t i = 0; i < sides.size(); i++) sides[i].address = at(memories[i]) + skew;
    ASSERT_TRUE(sumsAsOracle(memories, sides, static_cast<int>(1 + skew % 3))) << "skew " << skew;
  }
}

// More moves than a warp looks through at a time, many of them empty of tiles that it takes.
TEST(SimtHash, SumsManyTensors) {
  Random random{std::mt19937_64(3)};
  std::vector<Bytes> memories;
  std::vector<HashSide> sides;
  for (std::uint32_t i = 0; i < 2000; i++) {
    memories.push_back(randomBytes(random, random.pick(100) == 0 ? 1 + random.pick(60'000) : 1 + random.pick(600)));
    HashSide side;
    side.address = at(memories.back());
    side.inner = memories.back().size();
    side.group = i;
    sides.push_back(side);
  }
  for (const int ctas : {1, 5}) {
    simt::machine().reset(static_cast<unsigned>(ctas));
    ASSERT_TRUE(sumsAsOracle(memories, sides, ctas));
  }
}

// Every pair of dtypes, aligned or not, with ends that are no whole words.
TEST(SimtHash, SumsCasts) {
  constexpr DType kFloats[] = {DType::kF64, DType::kF32, DType::kF16, DType::kBf16, DType::kF8e4m3, DType::kF8e5m2};
  Random random{std::mt19937_64(4)};
  for (const DType from : kFloats) {
    for (const DType to : kFloats) {
      if (from == to) continue;
      simt::machine().reset(random.engine());
      std::vector<Bytes> memories;
      std::vector<HashSide> sides;
      for (std::uint32_t i = 0; i < 16; i++) {
        HashSide side;
        side.transform = castTransform(from, to);
        side.unit = elementBytes(from);
        side.wordUnit = elementBytes(to);
        side.inner = i % 4 == 0 ? 3000 + random.pick(2000) : 1 + random.pick(100);
        side.counts[2] = 1 + random.pick(6);
        const std::uint64_t pitch = side.inner * side.unit + random.pick(3) * (i % 2 == 0 ? 16 : side.unit);
        side.strides[2] = static_cast<std::int64_t>(pitch);
        const std::uint64_t skew = i % 3 == 0 ? random.pick(16) : 0;
        memories.push_back(randomBytes(random, skew + pitch * (side.counts[2] - 1) + side.inner * side.unit));
        side.address = at(memories.back()) + skew;
        side.group = i;
        sides.push_back(side);
      }
      ASSERT_TRUE(sumsAsOracle(memories, sides, static_cast<int>(1 + random.pick(3))))
          << static_cast<int>(from) << " to " << static_cast<int>(to);
    }
  }
}

// Lists so long that tiles have their full size, and runs of many tiles; the last ones end within a word.
TEST(SimtHash, SumsTilesOfFullSize) {
  for (const std::uint64_t skew : {0u, 8u, 3u, 13u}) {
    simt::machine().reset(skew);
    Random random{std::mt19937_64(skew)};
    std::vector<Bytes> memories;
    std::vector<HashSide> sides;
    for (const std::uint64_t bytes : {std::uint64_t{5'000'000} + skew, std::uint64_t{300'000}}) {
      memories.push_back(randomBytes(random, skew + bytes));
      HashSide side;
      side.inner = bytes;
      side.group = static_cast<std::uint32_t>(sides.size());
      sides.push_back(side);
    }
    for (std::size_t i = 0; i < sides.size(); i++) sides[i].address = at(memories[i]) + skew;
    HashList list;
    for (const HashSide& side : sides) addSide(side, list.moves);
    cutHashTiles(list, 1);
    EXPECT_EQ(list.moves[0].segmentSlots, 2048u);
    ASSERT_TRUE(sumsAsOracle(memories, sides, 1)) << "skew " << skew;
  }
}

// A list that a failed rank neither clears nor hashes.
TEST(SimtHash, LeavesSumsAloneBehindAFailure) {
  simt::machine().reset(1);
  Random random{std::mt19937_64(5)};
  const Bytes memory = randomBytes(random, 100'000);
  HashSide side;
  side.address = at(memory);
  side.inner = memory.size();
  HashRun run({side}, 3);
  run.enqueue();
  EXPECT_EQ(run.sums()[0], oracle(side));
  run.words().drained = 1;
  run.enqueue();
  EXPECT_EQ(run.sums()[0], oracle(side));
}

// The first group that differs is in the record, and the execution does not count as one without an error.
TEST(SimtHash, ComparesBothEpochs) {
  for (std::uint64_t epoch = 4; epoch < 8; epoch++) {
    simt::machine().reset(epoch);
    constexpr std::uint32_t kGroups = 700;
    std::vector<std::uint64_t> sent(2 * kGroups), received(2 * kGroups);
    std::vector<HashCheck> checks(kGroups);
    for (std::uint32_t i = 0; i < kGroups; i++) {
      for (const std::uint32_t half : {0u, kGroups}) sent[half + i] = received[half + i] = half + i;
      checks[i] = {reinterpret_cast<std::uint64_t>(&sent[i]), kGroups * sizeof sent[0], 3, static_cast<int>(i), 1, 0};
    }
    TransferState state;
    TransferCounts counts;
    DeviceStatus status;
    RankWords words;
    state.epoch = epoch;
    state.completed = 5;
    CompareArgs args = {};
    args.checks = checks.data();
    args.received = {received.data(), kGroups};
    args.state = &state;
    args.counts = &counts;
    args.status = &status;
    args.words = &words;
    CHECK_CUDA(launchCompareHashes(args, nullptr));
    CHECK_CUDA(cudaDeviceSynchronize());
    EXPECT_EQ(status.code, 0);
    EXPECT_EQ(state.completed, 5u);
    received[(epoch & 1) * kGroups + 601]++;
    CHECK_CUDA(launchCompareHashes(args, nullptr));
    CHECK_CUDA(cudaDeviceSynchronize());
    EXPECT_EQ(status.code, static_cast<int>(ErrorCode::kVerify));
    EXPECT_EQ(status.missing, 601 * 2 + 1);
    EXPECT_EQ(state.completed, 4u);
  }
}

}  // namespace
}  // namespace nccl_ext::test
