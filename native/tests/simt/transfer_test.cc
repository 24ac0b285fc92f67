// SPDX-License-Identifier: Apache-2.0
// The transfer kernels against a host that makes the same moves: several ranks at once, by vectors and by the bulk copy engine.
#include <gtest/gtest.h>

#include "m2n/gate.hpp"
#include "tests/gpu/m2n/run_lengths.cuh"

namespace nccl_ext::test {
namespace {

class SimtTransfer : public testing::TestWithParam<bool> {
 protected:
  bool bulk() const { return GetParam(); }
};

Generator generatorOf(std::uint64_t seed, int ranks, std::uint64_t space) {
  const auto count = static_cast<std::size_t>(ranks);
  return {std::mt19937_64(seed), std::vector<std::uint64_t>(count), std::vector<std::uint64_t>(count), space};
}

TEST_P(SimtTransfer, MovesEveryByteOfRandomPrograms) {
  constexpr std::uint64_t kBytes = 192 << 10;
  for (int round = 0; round < 24; round++) {
    simt::machine().reset(static_cast<unsigned>(round));
    const int size = 1 + round % 4;
    Memories memories(size, kBytes);
    Generator g = generatorOf(1000 + static_cast<unsigned>(round), size, kBytes);
    std::vector<RankMoves> ranks(static_cast<std::size_t>(size));
    for (int rank = 0; rank < size; rank++) {
      for (std::uint64_t tensor = g.pick(round % 5 == 0 ? 20 : 4); tensor-- > 0;) addTensor(g, memories, ranks, rank);
    }
    const StageLimits limits{static_cast<int>(1 + g.pick(3)), bulk()};
    ASSERT_TRUE(executeAndCompare(memories, ranks, limits, g)) << "round " << round;
  }
}

TEST_P(SimtTransfer, MovesRunsOfEveryLength) {
  for (std::uint64_t shift = 0; shift < 16; shift += 3) {
    simt::machine().reset(shift);
    const StageLimits limits{static_cast<int>(1 + shift % 3), bulk()};
    ASSERT_TRUE(executeRunLengths({shift, 1 + shift / 3 % 2, 2, 3}, limits)) << "shift " << shift;
  }
}

// One CTA with more tiles than its rings have stages: in runs that the engine stores, in runs that lanes store, and to replicas.
TEST_P(SimtTransfer, LoadsAStageAgainWhenItsStoreHasReadIt) {
  struct Case {
    std::uint64_t run;
    int copies;
  };
  for (const Case& one : {Case{4096, 1}, {4096, 2}, {200, 1}, {1000, 2}}) {
    simt::machine().reset(one.run + static_cast<unsigned>(one.copies));
    constexpr std::uint64_t kBytes = 600'000;
    const std::uint64_t rows = kBytes / one.run;
    Memories memories(3, kBytes);
    std::vector<RankMoves> ranks(3);
    for (int copy = 0; copy < one.copies; copy++) {
      Move move;
      move.peer = 1 + copy;
      move.source = memories.sources[0].address(0);
      move.destination = memories.destinations[static_cast<std::size_t>(move.peer)].address(0);
      move.inner = one.run / 2;
      move.counts[2] = rows;
      move.sourceStrides[2] = static_cast<std::int64_t>(one.run);
      move.destinationStrides[2] = static_cast<std::int64_t>(one.run / 2);
      ranks[0].stages[0].push_back(move);
      move.source += one.run / 2;
      move.destination += rows * (one.run / 2);
      ranks[0].stages[0].push_back(move);
    }
    Generator g = generatorOf(7, 3, kBytes);
    ASSERT_TRUE(executeAndCompare(memories, ranks, {1, bulk()}, g)) << "runs of " << one.run;
  }
}

// Two ranks that write to each other, 64 KiB each.
struct Pair {
  explicit Pair(std::uint64_t seed) : memories(2, kBytes), ranks(2) {
    simt::machine().reset(seed);
    for (int rank = 0; rank < 2; rank++) {
      const auto at = static_cast<std::size_t>(rank);
      Move move;
      move.peer = 1 - rank;
      move.source = memories.sources[at].address(0);
      move.destination = memories.destinations[1 - at].address(0);
      move.inner = kBytes;
      ranks[at].stages[0] = {move};
      std::fill(memories.sources[at].host.begin(), memories.sources[at].host.end(), std::uint8_t{7});
      memories.sources[at].push();
      memories.destinations[at].push();
    }
  }
  static constexpr std::uint64_t kBytes = 64 << 10;
  Memories memories;
  std::vector<RankMoves> ranks;
};

TEST_P(SimtTransfer, WritesNothingBeforeTheGrant) {
  for (std::uint64_t seed = 0; seed < 6; seed++) {
    Pair pair(seed);
    World world(pair.ranks, {2, bulk()});
    world.enqueue(0, world.stream(0));
    ASSERT_EQ(simt::machine().run(3000), "");
    ASSERT_FALSE(simt::machine().idle());
    const Memory& memory = pair.memories.destinations[1];
    ASSERT_EQ(std::memcmp(memory.device, memory.host.data(), Pair::kBytes), 0) << "seed " << seed;
    world.enqueue(1, world.stream(1));
    CHECK_CUDA(cudaDeviceSynchronize());
    for (const RankMoves& rank : pair.ranks) move(pair.memories, rank.stages[0][0]);
    EXPECT_TRUE(world.quiet() && same(pair.memories)) << "seed " << seed;
  }
}

// The record names the receiver, no byte is written, and what follows is skipped.
TEST_P(SimtTransfer, EndsByItsDeadlineWithoutAReceiver) {
  for (std::uint64_t seed = 0; seed < 3; seed++) {
    Pair pair(seed);
    pair.ranks[1].stages[0].clear();
    World world(pair.ranks, {2, bulk()}, 20'000'000);
    world.enqueue(0, world.stream(0));
    CHECK_CUDA(cudaDeviceSynchronize());
    EXPECT_EQ(world.status(0).code, static_cast<int>(ErrorCode::kTimeout));
    EXPECT_EQ(world.status(0).peer, 1);
    clear(const_cast<DeviceStatus&>(world.status(0)));
    world.enqueue(0, world.stream(0));
    world.enqueue(1, world.stream(1));
    CHECK_CUDA(cudaDeviceSynchronize());
    EXPECT_EQ(world.status(0).code, static_cast<int>(ErrorCode::kPoisoned));
    EXPECT_EQ(world.status(1).code, static_cast<int>(ErrorCode::kTimeout));
    EXPECT_EQ(world.status(1).peer, 0);
    EXPECT_EQ(world.counts(0).completed, 0u);
    EXPECT_TRUE(same(pair.memories)) << "seed " << seed;
  }
}

// Long before its deadline, with the reason that the host gives.
TEST_P(SimtTransfer, EndsWhenTheHostStopsItsRank) {
  for (std::uint64_t seed = 0; seed < 3; seed++) {
    Pair pair(seed);
    World world(pair.ranks, {2, bulk()}, 1'000'000'000'000);
    world.enqueue(0, world.stream(0));
    ASSERT_EQ(simt::machine().run(500), "");
    world.args(0).words->stop = static_cast<int>(ErrorCode::kAborted);
    CHECK_CUDA(cudaDeviceSynchronize());
    EXPECT_EQ(world.status(0).code, static_cast<int>(ErrorCode::kAborted));
    EXPECT_EQ(world.counts(0).completed, 0u);
    EXPECT_EQ(world.args(0).state->epoch, 1u);
    EXPECT_TRUE(same(pair.memories)) << "seed " << seed;
  }
}

// Around copies by copy engines, which are the host's here.
TEST(SimtGate, HoldsTheStreamUntilTheGrantAndTheArrival) {
  for (std::uint64_t seed = 0; seed < 6; seed++) {
    Pair pair(seed);
    World world(pair.ranks, {2, false});
    CHECK_CUDA(launchGate(world.args(0), world.stream(0)));
    ASSERT_EQ(simt::machine().run(2000), "");
    ASSERT_FALSE(simt::machine().idle());
    CHECK_CUDA(launchGate(world.args(1), world.stream(1)));
    CHECK_CUDA(cudaDeviceSynchronize());
    EXPECT_EQ(world.args(0).state->failed + world.args(1).state->failed, 0u);
    CHECK_CUDA(launchSettle(world.args(0), Pair::kBytes, world.stream(0)));
    ASSERT_EQ(simt::machine().run(2000), "");
    ASSERT_FALSE(simt::machine().idle());
    CHECK_CUDA(launchSettle(world.args(1), Pair::kBytes, world.stream(1)));
    CHECK_CUDA(cudaDeviceSynchronize());
    EXPECT_TRUE(world.quiet());
    for (int rank = 0; rank < 2; rank++) {
      EXPECT_EQ(world.counts(rank).completed, 1u);
      EXPECT_EQ(world.counts(rank).written, Pair::kBytes);
      EXPECT_EQ(world.args(rank).state->epoch, 1u);
    }
  }
}

TEST(SimtGate, EndsByItsDeadline) {
  Pair pair(1);
  World world(pair.ranks, {2, false}, 20'000'000);
  CHECK_CUDA(launchGate(world.args(0), world.stream(0)));
  CHECK_CUDA(cudaDeviceSynchronize());
  EXPECT_EQ(world.status(0).code, static_cast<int>(ErrorCode::kTimeout));
  EXPECT_EQ(world.status(0).peer, 1);
  EXPECT_EQ(world.args(0).state->failed, 1u);
  CHECK_CUDA(launchSettle(world.args(0), Pair::kBytes, world.stream(0)));
  CHECK_CUDA(cudaDeviceSynchronize());
  EXPECT_EQ(world.args(0).state->failed, 0u);
  EXPECT_EQ(world.args(0).state->epoch, 1u);
  EXPECT_EQ(world.counts(0).completed + world.counts(0).written, 0u);
}

INSTANTIATE_TEST_SUITE_P(Paths, SimtTransfer, testing::Bool(),
                         [](const auto& info) { return info.param ? "Bulk" : "Vectors"; });

}  // namespace
}  // namespace nccl_ext::test
