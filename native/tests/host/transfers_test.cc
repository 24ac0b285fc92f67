// SPDX-License-Identifier: Apache-2.0
// The life of a transfer on the fake CUDA runtime: grants, forwarding, graphs, several streams, failures, disposal.
#include <cstring>

#include "tests/fake/fake_cudart.hpp"
#include "tests/support/moves.hpp"
#include "tests/support/one_rank.hpp"

namespace nccl_ext::test {
namespace {

std::string textOf(const std::uint8_t* bytes, std::size_t count) {
  return std::string(reinterpret_cast<const char*>(bytes), count);
}

void put(std::uint8_t* to, const char* text) {
  std::memcpy(to, text, std::strlen(text));
}

TEST(Transfers, MoveRowsToColumnsAndForwardThem) {
  MovingRanks world(3);
  const std::vector<TestMove> moves = {
      // Two rows of four bytes become columns of an 8 byte wide tensor, each from another rank.
      {0, 1, 4, 0, 0, {1, 1, 2}, {0, 0, 4}, {0, 0, 8}},
      {2, 1, 4, 0, 4, {1, 1, 2}, {0, 0, 4}, {0, 0, 8}},
      // What arrived goes on.
      {1, 2, 16, 0, 8, {1, 1, 1}, {}, {}, 1},
  };
  const auto transfers = world.prepared(moves);
  for (int round = 0; round < 3; round++) {
    put(world.bytesOf(world.sources[0]), "abcdefgh");
    put(world.bytesOf(world.sources[2]), "ABCDEFGH");
    for (std::size_t rank = 0; rank < 3; rank++)
      ASSERT_TRUE(world.runtime.enqueueTransfer(transfers[rank], world.streams[rank]));
    for (const Handle stream : world.streams) EXPECT_TRUE(world.synchronize(stream));
    EXPECT_EQ(textOf(world.bytesOf(world.destinations[1]), 16), "abcdABCDefghEFGH");
    EXPECT_EQ(textOf(world.bytesOf(world.destinations[2]) + 8, 16), "abcdABCDefghEFGH");
    std::memset(world.bytesOf(world.destinations[1]), 0, 256);
    std::memset(world.bytesOf(world.destinations[2]), 0, 256);
  }
  const std::int64_t written[] = {8, 16, 8};
  for (std::size_t rank = 0; rank < 3; rank++) {
    EXPECT_EQ(world.runtime.progressOf(transfers[rank]).completed, 3);
    EXPECT_EQ(world.runtime.progressOf(transfers[rank]).writtenBytes, 3 * written[rank]);
    EXPECT_TRUE(world.disposeTransfer(transfers[rank]));
    EXPECT_EQ(world.runtime.progressOf(transfers[rank]).completed, 0);
    EXPECT_EQ(codeOf(world.disposeTransfer(transfers[rank])), ErrorCode::kDisposed);
  }
}

TEST(Transfers, TouchNoDestinationBeforeItsRankComes) {
  MovingRanks world(2);
  const auto transfers = world.prepared({{0, 1, 8}});
  put(world.bytesOf(world.sources[0]), "abcdefgh");
  put(world.bytesOf(world.destinations[1]), "........");
  ASSERT_TRUE(world.runtime.enqueueTransfer(transfers[0], world.streams[0]));
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  EXPECT_EQ(textOf(world.bytesOf(world.destinations[1]), 8), "........");
  ASSERT_TRUE(world.runtime.enqueueTransfer(transfers[1], world.streams[1]));
  for (const Handle stream : world.streams) EXPECT_TRUE(world.synchronize(stream));
  EXPECT_EQ(textOf(world.bytesOf(world.destinations[1]), 8), "abcdefgh");
}

TEST(Transfers, FollowEachOtherOnSeveralStreams) {
  MovingRanks world(2, 1 << 16);
  const auto transfers = world.prepared({{0, 1, 1 << 16}});
  std::vector<Handle> more;
  for (const Handle rank : world.handles) more.push_back(valueOf(world.runtime.createStream(rank)));
  for (int round = 0; round < 8; round++) {
    for (std::size_t rank = 0; rank < 2; rank++) {
      const Handle stream = round % 2 == 0 ? world.streams[rank] : more[rank];
      ASSERT_TRUE(world.runtime.enqueueTransfer(transfers[rank], stream));
    }
  }
  for (std::size_t rank = 0; rank < 2; rank++) {
    EXPECT_TRUE(world.synchronize(world.streams[rank]));
    EXPECT_TRUE(world.synchronize(more[rank]));
    EXPECT_EQ(world.runtime.progressOf(transfers[rank]).completed, 8);
  }
}

TEST(Transfers, RunFromGraphs) {
  MovingRanks world(3);
  const auto transfers = world.prepared({{0, 1, 16}, {1, 2, 16}, {2, 0, 16}});
  for (std::size_t rank = 0; rank < 3; rank++)
    std::memset(world.bytesOf(world.sources[rank]), static_cast<int>(rank) + 1, 16);
  std::vector<Handle> graphs;
  for (std::size_t rank = 0; rank < 3; rank++) {
    ASSERT_TRUE(world.runtime.beginCapture(world.streams[rank]));
    ASSERT_TRUE(world.runtime.enqueueTransfer(transfers[rank], world.streams[rank]));
    ASSERT_TRUE(
        world.runtime.enqueueCopy(world.streams[rank], world.sources[rank], 0, world.destinations[rank], 0, 16));
    ASSERT_TRUE(world.runtime.enqueueBarrier(world.streams[rank]));
    graphs.push_back(valueOf(world.runtime.endCapture(world.streams[rank])));
  }
  for (int step = 0; step < 4; step++) {
    for (std::size_t rank = 0; rank < 3; rank++)
      ASSERT_TRUE(world.runtime.launchGraph(graphs[rank], world.streams[rank]));
  }
  for (const Handle stream : world.streams) EXPECT_TRUE(world.synchronize(stream));
  // Four turns of a ring of three leave each rank with its predecessor's value.
  EXPECT_EQ(world.bytesOf(world.destinations[0])[0], 3);
  EXPECT_EQ(world.bytesOf(world.destinations[1])[0], 1);
  EXPECT_EQ(world.runtime.progressOf(transfers[0]).completed, 4);
  // A graph keeps the transfer, and the transfer its buffers.
  EXPECT_EQ(codeOf(world.disposeTransfer(transfers[0])), ErrorCode::kBusy);
  EXPECT_EQ(codeOf(world.runtime.freeBuffer(world.destinations[0])), ErrorCode::kBusy);
  for (std::size_t rank = 0; rank < 3; rank++) {
    EXPECT_TRUE(world.runtime.freeGraph(graphs[rank]));
    EXPECT_TRUE(world.disposeTransfer(transfers[rank]));
    EXPECT_TRUE(world.runtime.freeBuffer(world.destinations[rank]));
  }
}

TEST(Transfers, ConvertWhileTheyCopy) {
  MovingRanks world(2);
  TestMove move{0, 1, 3};
  move.transform = castTransform(DType::kF32, DType::kBf16);
  const auto transfers = world.prepared({move});
  const float values[] = {1, 1.00390625f, -0.0f};
  std::memcpy(world.bytesOf(world.sources[0]), values, sizeof values);
  for (std::size_t rank = 0; rank < 2; rank++)
    ASSERT_TRUE(world.runtime.enqueueTransfer(transfers[rank], world.streams[rank]));
  for (const Handle stream : world.streams) EXPECT_TRUE(world.synchronize(stream));
  std::uint16_t seen[3];
  std::memcpy(seen, world.bytesOf(world.destinations[1]), sizeof seen);
  EXPECT_EQ(seen[0], 0x3f80);
  EXPECT_EQ(seen[1], 0x3f80);
  EXPECT_EQ(seen[2], 0x8000);
}

TEST(Transfers, VerifyWhatArrived) {
  MovingRanks world(3);
  std::vector<TestMove> moves = {
      {0, 1, 13, 0, 3, {1, 2, 3}, {0, 64, 20}, {0, 80, 20}}, {1, 2, 40, 3, 1, {1, 1, 1}, {}, {}, 1}, {2, 2, 7, 0, 128}};
  moves.push_back({0, 2, 5, 8, 64});
  moves.back().transform = castTransform(DType::kF32, DType::kBf16);
  std::vector<PrepareConfig> configs;
  for (int rank = 0; rank < 3; rank++) {
    configs.push_back(world.configOf(rank, moves));
    configs.back().verify = true;
    Bytes bytes = pattern(256);
    std::memcpy(world.bytesOf(world.sources[static_cast<std::size_t>(rank)]), bytes.data(), bytes.size());
  }
  std::vector<Handle> right;
  for (const auto& outcome : world.prepare(configs)) right.push_back(valueOf(outcome));
  // Rank 2 looks at other bytes than rank 0 wrote.
  configs[2].program.receives->destinationOffset[0] += 1;
  std::vector<Handle> wrong;
  for (const auto& outcome : world.prepare(configs)) wrong.push_back(valueOf(outcome));
  for (int round = 0; round < 3; round++) {
    for (std::size_t rank = 0; rank < 3; rank++)
      ASSERT_TRUE(world.runtime.enqueueTransfer(right[rank], world.streams[rank]));
  }
  for (const Handle stream : world.streams) EXPECT_TRUE(world.synchronize(stream));
  for (std::size_t rank = 0; rank < 3; rank++)
    ASSERT_TRUE(world.runtime.enqueueTransfer(wrong[rank], world.streams[rank]));
  EXPECT_TRUE(world.synchronize(world.streams[0]));
  EXPECT_TRUE(world.synchronize(world.streams[1]));
  const Status found = world.synchronize(world.streams[2]);
  ASSERT_EQ(codeOf(found), ErrorCode::kVerify);
  EXPECT_EQ(found.error().peer, 0);
  EXPECT_EQ(found.error().detail, "tensor 0 as sent by rank 0 arrived on rank 2 with other bytes");
  EXPECT_FALSE(world.runtime.poisonOf(world.handles[2]).has_value());
  EXPECT_EQ(world.runtime.progressOf(right[2]).completed, 3);
  EXPECT_EQ(world.runtime.progressOf(wrong[2]).completed, 0);
  EXPECT_EQ(world.runtime.progressOf(wrong[0]).completed, 1);
}

TEST(Transfers, RefuseStreamsOfOtherRanksAndWhatIsGone) {
  MovingRanks world(2);
  const auto transfers = world.prepared({{0, 1, 8}});
  EXPECT_EQ(codeOf(world.runtime.enqueueTransfer(transfers[0], world.streams[1])), ErrorCode::kForeignObject);
  EXPECT_EQ(codeOf(world.runtime.enqueueTransfer(world.streams[0], world.streams[0])), ErrorCode::kInvalidArgument);
  EXPECT_TRUE(world.disposeTransfer(transfers[0]));
  EXPECT_EQ(codeOf(world.runtime.enqueueTransfer(transfers[0], world.streams[0])), ErrorCode::kDisposed);
}

TEST(Transfers, NameARankThatDoesNotCome) {
  MovingRanks world(2, 256, Timeout(60));
  const auto transfers = world.prepared({{0, 1, 8}});
  put(world.bytesOf(world.destinations[1]), "........");
  ASSERT_TRUE(world.runtime.enqueueTransfer(transfers[0], world.streams[0]));
  const Status ended = world.synchronize(world.streams[0]);
  ASSERT_EQ(codeOf(ended), ErrorCode::kTimeout);
  EXPECT_EQ(ended.error().op, "transfer");
  EXPECT_EQ(ended.error().rank, 0);
  EXPECT_EQ(ended.error().peer, 1);
  EXPECT_EQ(textOf(world.bytesOf(world.destinations[1]), 8), "........");
  EXPECT_EQ(codeOf(world.runtime.enqueueTransfer(transfers[0], world.streams[0])), ErrorCode::kPoisoned);
  EXPECT_EQ(world.runtime.progressOf(transfers[0]).completed, 0);
  EXPECT_TRUE(world.disposeTransfer(transfers[0]));
  EXPECT_TRUE(world.runtime.freeBuffer(world.destinations[0]));
}

TEST(Transfers, EndWhenAPeerIsAborted) {
  MovingRanks world(2, 256, Timeout(5000));
  const auto transfers = world.prepared({{0, 1, 8}});
  ASSERT_TRUE(world.runtime.enqueueTransfer(transfers[1], world.streams[1]));
  ASSERT_TRUE(world.runtime.abortRank(world.handles[0], "test"));
  const Status ended = world.synchronize(world.streams[1]);
  ASSERT_EQ(codeOf(ended), ErrorCode::kRankLost);
  EXPECT_EQ(ended.error().peer, 0);
}

TEST(Transfers, LeaveNothingBehind) {
  MovingRanks world(2);
  const auto once = [&] {
    const auto transfers = world.prepared({{0, 1, 64}, {1, 1, 32, 0, 128}});
    for (std::size_t rank = 0; rank < 2; rank++)
      ASSERT_TRUE(world.runtime.enqueueTransfer(transfers[rank], world.streams[rank]));
    // Disposing waits for what is queued.
    for (const Handle transfer : transfers) EXPECT_TRUE(world.disposeTransfer(transfer));
  };
  const auto settled = [&] {
    int least = fake::liveObjects();
    for (int i = 0; i < 100; i++) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      least = std::min(least, fake::liveObjects());
    }
    return least;
  };
  for (int i = 0; i < 300; i++) once();
  const int before = settled();
  for (int i = 0; i < 100; i++) once();
  EXPECT_EQ(settled(), before);
}

TEST(Transfers, GoWithTheirRanks) {
  MovingRanks world(2);
  const auto transfers = world.prepared({{0, 1, 64}});
  ASSERT_TRUE(world.runtime.enqueueTransfer(transfers[0], world.streams[0]));
  ASSERT_TRUE(world.runtime.enqueueTransfer(transfers[1], world.streams[1]));
  // The destructor disposes the ranks, and expects that to succeed.
}

}  // namespace
}  // namespace nccl_ext::test
