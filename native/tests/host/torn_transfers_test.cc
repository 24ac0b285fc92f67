// SPDX-License-Identifier: Apache-2.0
// What a failure of one operation does to the transfers of its rank and of others, on the fake CUDA runtime.
#include "tests/fake/fake_cudart.hpp"
#include "tests/support/moves.hpp"
#include "tests/support/one_rank.hpp"

namespace nccl_ext::test {
namespace {

using std::chrono::milliseconds;

// A barrier for which nobody comes fails on a stream of its own, in the middle of what is enqueued half a timeout later.
constexpr milliseconds kTimeout{800};
void failSoon(MovingRanks& world, std::size_t rank) {
  ASSERT_TRUE(world.runtime.enqueueBarrier(valueOf(world.runtime.createStream(world.handles[rank]))));
  std::this_thread::sleep_for(kTimeout / 2);
}

TEST(TornTransfers, TellTheirOwnStream) {
  MovingRanks world(2, 256, kTimeout);
  const auto transfers = world.prepared({{0, 1, 8}});
  failSoon(world, 0);
  ASSERT_TRUE(world.runtime.enqueueTransfer(transfers[0], world.streams[0]));
  const Status torn = world.synchronize(world.streams[0]);
  ASSERT_EQ(codeOf(torn), ErrorCode::kPoisoned);
  EXPECT_EQ(torn.error().op, "transfer");
  EXPECT_NE(torn.error().detail.find("is not to be used"), std::string::npos) << torn.error().detail;
  EXPECT_NE(torn.error().detail.find("waited too long in barrier for rank 1"), std::string::npos)
      << torn.error().detail;
  EXPECT_EQ(world.runtime.progressOf(transfers[0]).completed, 0);
}

// Rank 0 has sent the first execution and skips the third; rank 1 still waits for rank 2 in the first.
TEST(TornTransfers, LeaveTheSumsOfEarlierOnes) {
  MovingRanks world(3, 256, kTimeout);
  std::vector<PrepareConfig> configs;
  for (int rank = 0; rank < 3; rank++) {
    configs.push_back(world.configOf(rank, {{0, 1, 64}, {2, 1, 64, 0, 128}}));
    configs.back().verify = true;
  }
  std::vector<Handle> transfers;
  for (const auto& outcome : world.prepare(configs)) transfers.push_back(valueOf(outcome));
  const Bytes bytes = pattern(64);
  std::copy(bytes.begin(), bytes.end(), world.bytesOf(world.sources[0]));
  failSoon(world, 0);
  for (int i = 0; i < 3; i++) ASSERT_TRUE(world.runtime.enqueueTransfer(transfers[0], world.streams[0]));
  ASSERT_TRUE(world.runtime.enqueueTransfer(transfers[1], world.streams[1]));
  world.until([&] { return world.runtime.queued(world.streams[0]) == 0; });
  ASSERT_TRUE(world.runtime.enqueueTransfer(transfers[2], world.streams[2]));
  const Status arrived = world.synchronize(world.streams[1]);
  EXPECT_TRUE(arrived) << arrived.error().detail;
  EXPECT_EQ(world.runtime.progressOf(transfers[1]).completed, 1);
}

TEST(TornTransfers, PoisonTheirRankWhereTheRestIsNotLaunched) {
  MovingRanks world(2, 256, kTimeout);
  const auto transfers = world.prepared({{0, 1, 64}, {1, 0, 32, 0, 128, {1, 1, 1}, {}, {}, 1}});
  fake::failLaunchAfter(1);
  ASSERT_FALSE(world.runtime.enqueueTransfer(transfers[0], world.streams[0]));
  EXPECT_TRUE(world.runtime.poisonOf(world.handles[0]).has_value());
  EXPECT_EQ(codeOf(world.runtime.enqueueTransfer(transfers[0], world.streams[0])), ErrorCode::kPoisoned);
}

// Nobody has asked for the record when the buffer is freed.
TEST(TornTransfers, KeepMemoryThatALateSenderMayWriteTo) {
  MovingRanks world(2, 256, milliseconds(60));
  const auto transfers = world.prepared({{0, 1, 8}});
  ASSERT_TRUE(world.runtime.enqueueTransfer(transfers[1], world.streams[1]));
  world.until([&] { return world.runtime.queued(world.streams[1]) == 0; });
  ASSERT_TRUE(world.disposeTransfer(transfers[1]));
  const std::int64_t before = world.runtime.memoryUsage().reservedBytes;
  ASSERT_TRUE(world.runtime.freeBuffer(world.destinations[1]));
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_EQ(world.runtime.memoryUsage().reservedBytes, before);
}

}  // namespace
}  // namespace nccl_ext::test
