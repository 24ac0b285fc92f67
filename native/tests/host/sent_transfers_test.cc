// SPDX-License-Identifier: Apache-2.0
// Transfers between ranks that do not write into each other's memory, on fakes of CUDA and NCCL: rounds, forwarding, graphs,
// verification, and which pairs send and why.
#include "tests/support/gpus.hpp"
#include "tests/support/sending.hpp"

namespace nccl_ext::test {
namespace {

TEST(SentTransfers, MoveEveryByteInRounds) {
  SendingRanks world(4);
  std::mt19937 random(5);
  for (const StagingLimits& staging : {StagingLimits{}, StagingLimits{512, 64}, StagingLimits{2048, 5}}) {
    const std::vector<TestMove> moves = randomMoves(random, 4);
    const auto transfers = world.sent(moves, staging);
    for (std::uint32_t seed = 1; seed < 4; seed++) {
      world.fill(seed);
      world.run(transfers);
      expect(world, moves);
    }
    for (std::size_t rank = 0; rank < 4; rank++) {
      std::int64_t written = 0;
      for (const TestMove& move : moves)
        written +=
            move.from == static_cast<int>(rank) ? move.inner * move.counts[0] * move.counts[1] * move.counts[2] : 0;
      EXPECT_EQ(world.runtime.progressOf(transfers[rank]).writtenBytes, 3 * written);
      EXPECT_EQ(world.runtime.progressOf(transfers[rank]).completed, 3);
      EXPECT_TRUE(world.disposeTransfer(transfers[rank]));
    }
  }
}

TEST(SentTransfers, ConvertAndForwardAndVerify) {
  SendingRanks world(3);
  TestMove cast{0, 1, 300, 0, 64};
  cast.transform = castTransform(DType::kF32, DType::kBf16);
  const std::vector<TestMove> moves = {{0, 1, 13}, cast, {1, 2, 700, 0, 0, {1, 1, 1}, {}, {}, 1}, {2, 2, 9, 0, 4096}};
  const auto transfers = world.sent(moves, {256, 64}, true);
  for (int round = 0; round < 3; round++) {
    world.fill(static_cast<std::uint32_t>(round));
    world.run(transfers);
    EXPECT_EQ(std::memcmp(world.bytesOf(world.destinations[2]), world.bytesOf(world.destinations[1]), 700), 0);
    EXPECT_EQ(std::memcmp(world.bytesOf(world.destinations[1]), world.bytesOf(world.sources[0]), 13), 0);
    EXPECT_EQ(std::memcmp(world.bytesOf(world.destinations[2]) + 4096, world.bytesOf(world.sources[2]), 9), 0);
  }
  EXPECT_EQ(world.runtime.progressOf(transfers[2]).completed, 3);
}

TEST(SentTransfers, FindWhatArrivedWrong) {
  SendingRanks world(2);
  const std::vector<TestMove> moves = {{0, 1, 64}};
  std::vector<PrepareConfig> configs = {world.configOf(0, moves), world.configOf(1, moves)};
  for (PrepareConfig& config : configs) {
    config.path = "sendrecv";
    config.verify = true;
  }
  configs[1].program.receives->destinationOffset[0] += 1;
  std::vector<Handle> transfers;
  for (const auto& outcome : world.prepare(configs)) transfers.push_back(valueOf(outcome));
  world.fill(3);
  for (std::size_t rank = 0; rank < 2; rank++)
    ASSERT_TRUE(world.runtime.enqueueTransfer(transfers[rank], world.streams[rank]));
  EXPECT_TRUE(world.synchronize(world.streams[0]));
  EXPECT_EQ(codeOf(world.synchronize(world.streams[1])), ErrorCode::kVerify);
}

TEST(SentTransfers, RunFromGraphs) {
  SendingRanks world(2);
  const std::vector<TestMove> moves = {{0, 1, 5000}, {1, 0, 5000}};
  const auto transfers = world.sent(moves, {1024, 64});
  std::vector<Handle> graphs;
  for (std::size_t rank = 0; rank < 2; rank++) {
    ASSERT_TRUE(world.runtime.beginCapture(world.streams[rank]));
    ASSERT_TRUE(world.runtime.enqueueTransfer(transfers[rank], world.streams[rank]));
    graphs.push_back(valueOf(world.runtime.endCapture(world.streams[rank])));
  }
  for (std::uint32_t seed = 1; seed < 4; seed++) {
    world.fill(seed);
    for (std::size_t rank = 0; rank < 2; rank++)
      ASSERT_TRUE(world.runtime.launchGraph(graphs[rank], world.streams[rank]));
    for (const Handle stream : world.streams) EXPECT_TRUE(world.synchronize(stream));
    expect(world, moves);
  }
}

// GPU 2 reaches nobody, control blocks neither.
TEST(SentTransfers, SendWhereMemoryCannotBeReached) {
  const Gpus gpus(3);
  SendingRanks world(3);
  const std::vector<TestMove> moves = {{0, 1, 700}, {0, 2, 900}, {2, 1, 500, 0, 1000}, {1, 1, 10, 0, 2000}};
  const auto transfers = world.sent(moves, {256, 64}, true, "auto");
  world.fill(9);
  world.run(transfers);
  expect(world, moves);
  const auto paths = world.runtime.pathsOf(transfers[0]);
  ASSERT_EQ(paths.size(), 2u);
  EXPECT_STREQ(paths[0].path, "mapped");
  EXPECT_STREQ(paths[1].path, "sendrecv");
  EXPECT_EQ(paths[1].bytes, 900);
  EXPECT_NE(paths[1].why.find("rank 0 cannot write to memory of rank 2"), std::string::npos) << paths[1].why;
  std::vector<PrepareConfig> configs;
  for (int rank = 0; rank < 3; rank++) {
    configs.push_back(world.configOf(rank, moves));
    configs.back().path = "mapped";
  }
  for (const auto& outcome : world.prepare(std::move(configs))) EXPECT_EQ(codeOf(outcome), ErrorCode::kUnsupported);
}

TEST(SentTransfers, RefuseUnknownPathsAndDifferentOnes) {
  SendingRanks world(2);
  std::vector<PrepareConfig> configs = {world.configOf(0, {{0, 1, 8}}), world.configOf(1, {{0, 1, 8}})};
  configs[1].path = "mapped";
  for (const auto& outcome : world.prepare(configs)) {
    ASSERT_EQ(codeOf(outcome), ErrorCode::kDisagreement);
    EXPECT_NE(outcome.error().detail.find("rank 1 and the others hold different values of path"), std::string::npos)
        << outcome.error().detail;
  }
  configs[0].path = configs[1].path = "pigeon";
  for (const auto& outcome : world.prepare(configs)) EXPECT_EQ(codeOf(outcome), ErrorCode::kInvalidArgument);
}

TEST(SentTransfers, LeaveTheMappedPathAlone) {
  SendingRanks world(2);
  const auto transfers = world.sent({{0, 1, 64}, {1, 1, 32, 0, 100}}, {}, false, "auto");
  const auto paths = world.runtime.pathsOf(transfers[1]);
  ASSERT_EQ(paths.size(), 2u);
  EXPECT_STREQ(paths[0].path, "local");
  EXPECT_EQ(paths[0].bytes, 32);
  EXPECT_STREQ(paths[1].path, "mapped");
  EXPECT_STREQ(paths[1].direction, "receive");
  EXPECT_EQ(paths[1].bytes, 64);
  EXPECT_EQ(paths[1].why, "");
}

}  // namespace
}  // namespace nccl_ext::test
