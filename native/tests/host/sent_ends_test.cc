// SPDX-License-Identifier: Apache-2.0
// How transfers that send end where NCCL itself would wait for ever: ranks that do not come or are aborted, connections under way,
// graphs that hold groups.
#include "tests/support/failing_nccl.hpp"
#include "tests/support/gpus.hpp"
#include "tests/support/sending.hpp"

namespace nccl_ext::test {
namespace {

// Nothing but the host's watch finds that out.
TEST(SentTransfers, EndAfterTheTimeoutWhereRanksDoNotMeet) {
  const Gpus gpus(3);
  SendingRanks world(3, Timeout(300));
  const auto transfers = world.sent({{2, 0, 64}, {0, 2, 64}}, {}, false, "auto");
  ASSERT_TRUE(world.runtime.enqueueTransfer(transfers[2], world.streams[2]));
  const Status failed = world.synchronize(world.streams[2]);
  ASSERT_EQ(codeOf(failed), ErrorCode::kTimeout) << failed.error().detail;
  EXPECT_EQ(failed.error().peer, 0);
  EXPECT_NE(failed.error().detail.find("rank 2 waited too long in transfer to exchange bytes with rank 0"),
            std::string::npos)
      << failed.error().detail;
  EXPECT_EQ(world.runtime.progressOf(transfers[2]).completed, 0);
}

// Ranks that meet wait for each other before NCCL does, so the missing one is known.
TEST(SentTransfers, NameARankThatDoesNotCome) {
  SendingRanks world(3, Timeout(200));
  const auto transfers = world.sent({{0, 1, 64}, {1, 2, 64}, {2, 0, 64}});
  for (const std::size_t rank : {std::size_t{0}, std::size_t{2}})
    ASSERT_TRUE(world.runtime.enqueueTransfer(transfers[rank], world.streams[rank]));
  const Status failed = world.synchronize(world.streams[0]);
  ASSERT_EQ(codeOf(failed), ErrorCode::kTimeout);
  EXPECT_EQ(failed.error().peer, 1) << failed.error().detail;
  const Status waited = world.synchronize(world.streams[2]);
  ASSERT_EQ(codeOf(waited), ErrorCode::kTimeout) << waited.error().detail;
  EXPECT_EQ(waited.error().peer, 1) << waited.error().detail;
  EXPECT_TRUE(world.runtime.poisonOf(world.handles[0]).has_value());
  EXPECT_EQ(codeOf(world.runtime.enqueueTransfer(transfers[0], world.streams[0])), ErrorCode::kPoisoned);
}

TEST(SentTransfers, EndWhenAPeerIsAborted) {
  SendingRanks world(2, Timeout(20'000));
  const auto transfers = world.sent({{0, 1, 64}});
  std::memset(world.bytesOf(world.destinations[1]), 7, 64);
  ASSERT_TRUE(world.runtime.enqueueTransfer(transfers[1], world.streams[1]));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  ASSERT_TRUE(world.runtime.abortRank(world.handles[0], "test"));
  const Status lost = world.synchronize(world.streams[1]);
  ASSERT_EQ(codeOf(lost), ErrorCode::kRankLost) << lost.error().detail;
  EXPECT_EQ(lost.error().peer, 0);
  EXPECT_EQ(world.bytesOf(world.destinations[1])[0], 7);
  EXPECT_EQ(world.runtime.progressOf(transfers[1]).completed, 0);
}

// Preparing connects pairs on the ranks' workers, which one that sends must not wait for, nor overtake on some ranks.
TEST(SentTransfers, AreRefusedWhileAnotherOneIsPrepared) {
  SendingRanks world(2);
  const std::vector<TestMove> moves = {{0, 1, 5000}, {1, 0, 5000}};
  const auto transfers = world.sent(moves);
  ASSERT_TRUE(world.runtime.beginCapture(world.streams[0]));
  ASSERT_TRUE(world.runtime.enqueueTransfer(transfers[0], world.streams[0]));
  const Handle graph = valueOf(world.runtime.endCapture(world.streams[0]));
  int prepared = 0;
  for (int rank = 0; rank < 2; rank++) {
    PrepareConfig config = world.configOf(rank, moves);
    config.path = "sendrecv";
    world.runtime.prepareTransfer(world.handles[static_cast<std::size_t>(rank)], std::move(config),
                                  [&](const Outcome<Handle>& made) { prepared += made ? 1 : 100; });
  }
  const Status refused = world.runtime.enqueueTransfer(transfers[0], world.streams[0]);
  ASSERT_EQ(codeOf(refused), ErrorCode::kBusy);
  EXPECT_NE(refused.error().detail.find("rank 0 prepares a transfer"), std::string::npos) << refused.error().detail;
  EXPECT_EQ(codeOf(world.runtime.launchGraph(graph, world.streams[0])), ErrorCode::kBusy);
  world.until([&] { return prepared >= 2; });
  EXPECT_EQ(prepared, 2);
  world.fill(4);
  ASSERT_TRUE(world.runtime.launchGraph(graph, world.streams[0]));
  ASSERT_TRUE(world.runtime.enqueueTransfer(transfers[1], world.streams[1]));
  for (const Handle stream : world.streams) EXPECT_TRUE(world.synchronize(stream));
  expect(world, moves);
}

// A rank that exchanges nothing waits for those that connect longer than for anything else.
TEST(SentTransfers, TakeTheirTimeToConnect) {
  const SlowConnections slow(1500);
  SendingRanks world(3, Timeout(1000));
  for (const Handle transfer : world.sent({{0, 1, 5000}})) EXPECT_NE(transfer, 0);
}

// None of three ranks waits until the deadline, which is later than the test's, where NCCL refuses `call` to rank 1.
void expectLossOf(const char* call) {
  const FailingNccl failing(call);
  SendingRanks world(3, Timeout(20'000));
  std::vector<PrepareConfig> configs;
  for (int rank = 0; rank < 3; rank++) {
    configs.push_back(world.configOf(rank, {{0, 1, 5000}}));
    configs.back().path = "sendrecv";
  }
  const auto outcomes = world.prepare(std::move(configs));
  EXPECT_EQ(codeOf(outcomes[1]), ErrorCode::kInternal);
  for (const std::size_t rank : {std::size_t{0}, std::size_t{2}}) {
    ASSERT_EQ(codeOf(outcomes[rank]), ErrorCode::kRankLost) << outcomes[rank].error().detail;
    EXPECT_EQ(outcomes[rank].error().peer, 1);
    EXPECT_NE(outcomes[rank].error().detail.find("rank 1 left: NCCL reports"), std::string::npos)
        << outcomes[rank].error().detail;
  }
}

// All wait in NCCL, those without pairs too.
TEST(SentTransfers, EndWhereARankGetsNoCommunicator) {
  expectLossOf("split 1");
}

// Rank 0 waits for it in NCCL, rank 2 in a meeting.
TEST(SentTransfers, EndWhereARankCannotConnect) {
  expectLossOf("connect 1");
}

// The communicator goes only when the worker has come back from NCCL, and a peer does not wait for its deadline.
TEST(SentTransfers, EndWhileTheyConnect) {
  const SlowConnections slow(400);
  SendingRanks world(2);
  std::vector<std::optional<ErrorCode>> failed(2);
  for (int rank = 0; rank < 2; rank++) {
    PrepareConfig config = world.configOf(rank, {{0, 1, 5000}});
    config.path = "sendrecv";
    const auto at = static_cast<std::size_t>(rank);
    world.runtime.prepareTransfer(world.handles[at], std::move(config),
                                  [&failed, at](const Outcome<Handle>& made) { failed[at] = codeOf(made); });
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  ASSERT_TRUE(world.runtime.abortRank(world.handles[0], "test"));
  world.until([&] { return failed[0].has_value() && failed[1].has_value(); });
  EXPECT_EQ(*failed[0], ErrorCode::kAborted);
  EXPECT_EQ(*failed[1], ErrorCode::kRankLost);
}

// NCCL ends no communicator before the graphs that hold groups of it.
TEST(SentTransfers, EndWithTheirGraphs) {
  for (const bool disposes : {true, false}) {
    SendingRanks world(2);
    const auto transfers = world.sent({{0, 1, 5000}, {1, 0, 5000}}, {1024, 64});
    for (std::size_t rank = 0; rank < 2; rank++) {
      ASSERT_TRUE(world.runtime.beginCapture(world.streams[rank]));
      ASSERT_TRUE(world.runtime.enqueueTransfer(transfers[rank], world.streams[rank]));
    }
    const Handle graph = valueOf(world.runtime.endCapture(world.streams[0]));
    ASSERT_TRUE(world.runtime.launchGraph(graph, world.streams[0]));
    ASSERT_TRUE(world.runtime.abortRank(world.handles[0], "test"));
    // Rank 1 still records. Without disposing, the environment ends.
    if (!disposes) world.handles.clear();
  }
}

}  // namespace
}  // namespace nccl_ext::test
