// SPDX-License-Identifier: Apache-2.0
// Waits for events of a rank that is aborted, on fake CUDA and NCCL: what it had not done passes for nothing.
#include "tests/support/harness.hpp"

namespace nccl_ext::test {
namespace {

using std::chrono::milliseconds;

struct AbortedRank : Harness {
  std::vector<Handle> handles = ranks(3, milliseconds(20'000));
  Handle first = valueOf(runtime.createStream(handles[0])), second = valueOf(runtime.createStream(handles[1])),
         third = valueOf(runtime.createStream(handles[2]));
  Handle drained = valueOf(runtime.createEvent(handles[0]));

  ~AbortedRank() { dispose(handles); }

  // A barrier for which nobody comes stands before the record.
  void recordInVain() {
    ASSERT_TRUE(runtime.enqueueBarrier(first));
    ASSERT_TRUE(runtime.recordEvent(drained, first));
  }
};

void expectLoss(const Status& status, int rank, const char* why) {
  ASSERT_EQ(codeOf(status), ErrorCode::kRankLost);
  EXPECT_EQ(status.error().op, "wait");
  EXPECT_EQ(status.error().rank, rank);
  EXPECT_EQ(status.error().peer, 0);
  EXPECT_NE(status.error().detail.find(why), std::string::npos) << status.error().detail;
}

// As packages/core/src/embedded/host/abort.test.ts has it.
TEST(LostRecords, AreNoWorkDone) {
  AbortedRank world;
  const Handle mark = valueOf(world.runtime.allocate(world.handles[1], 64, MemoryKind::kPlain));
  const Handle done = valueOf(world.runtime.createEvent(world.handles[0]));
  ASSERT_TRUE(world.runtime.enqueueFill(world.second, mark, 0, 64, 5));
  ASSERT_TRUE(world.synchronize(world.second));
  ASSERT_TRUE(world.runtime.recordEvent(done, world.first));
  ASSERT_TRUE(world.synchronize(world.first));
  world.recordInVain();
  ASSERT_TRUE(world.runtime.waitEvent(world.second, world.drained));
  ASSERT_TRUE(world.runtime.enqueueFill(world.second, mark, 0, 64, 1));
  ASSERT_TRUE(world.runtime.abortRank(world.handles[0], "test"));
  expectLoss(world.synchronize(world.second), 1, "rank 1 waited in wait for rank 0, which failed, was aborted");
  EXPECT_EQ(codeOf(world.synchronize(world.first)), ErrorCode::kAborted);
  EXPECT_EQ(codeOf(world.runtime.enqueueFill(world.second, mark, 0, 64, 1)), ErrorCode::kPoisoned);
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(valueOf(world.runtime.bufferAddress(mark)));
  EXPECT_EQ(Bytes(bytes, bytes + 64), Bytes(64, 5)) << "nothing behind the wait ran";

  ASSERT_TRUE(world.runtime.waitEvent(world.third, done));
  EXPECT_TRUE(world.synchronize(world.third)) << "what was done before the abort is done";
  ASSERT_TRUE(world.runtime.waitEvent(world.third, world.drained));
  expectLoss(world.synchronize(world.third), 2, "for rank 0");
}

TEST(LostRecords, PassTheLossOn) {
  AbortedRank world;
  const Handle passedOn = valueOf(world.runtime.createEvent(world.handles[1]));
  world.recordInVain();
  ASSERT_TRUE(world.runtime.waitEvent(world.second, world.drained));
  ASSERT_TRUE(world.runtime.recordEvent(passedOn, world.second));
  ASSERT_TRUE(world.runtime.waitEvent(world.third, passedOn));
  ASSERT_TRUE(world.runtime.abortRank(world.handles[0], "test"));
  expectLoss(world.synchronize(world.third), 2, "for rank 1, which lost rank 0");
  expectLoss(world.synchronize(world.second), 1, "for rank 0");
}

// A later record of the same event is another one.
TEST(LostRecords, AreOnlyThoseThatAWaitFound) {
  AbortedRank world;
  ASSERT_TRUE(world.runtime.recordEvent(world.drained, world.first));
  ASSERT_TRUE(world.synchronize(world.first));
  ASSERT_TRUE(world.runtime.waitEvent(world.second, world.drained));
  world.recordInVain();
  ASSERT_TRUE(world.runtime.abortRank(world.handles[0], "test"));
  EXPECT_TRUE(world.synchronize(world.second));
}

TEST(LostRecords, FailGraphsThatWaitForThem) {
  AbortedRank world;
  ASSERT_TRUE(world.runtime.beginCapture(world.first));
  world.recordInVain();
  const Handle recording = valueOf(world.runtime.endCapture(world.first));
  std::vector<Handle> graphs;
  for (const Handle stream : {world.second, world.third}) {
    ASSERT_TRUE(world.runtime.beginCapture(stream));
    ASSERT_TRUE(world.runtime.waitEvent(stream, world.drained));
    graphs.push_back(valueOf(world.runtime.endCapture(stream)));
  }
  ASSERT_TRUE(world.runtime.launchGraph(recording, world.first));
  ASSERT_TRUE(world.runtime.launchGraph(graphs[0], world.second));
  ASSERT_TRUE(world.runtime.abortRank(world.handles[0], "test"));
  ASSERT_TRUE(world.runtime.launchGraph(graphs[1], world.third));
  expectLoss(world.synchronize(world.second), 1, "for rank 0");
  expectLoss(world.synchronize(world.third), 2, "for rank 0");
}

// A rank goes by its number in the world of the rank that waits, or in the one that all were split from.
TEST(LostRecords, AreNamedAcrossSplits) {
  Harness harness;
  const auto ranks = harness.ranks(2, milliseconds(20'000));
  const auto split = [&](std::int64_t color0, std::int64_t color1) {
    std::vector<Handle> parts(2, 0);
    int done = 0;
    for (std::size_t rank = 0; rank < 2; rank++) {
      // The other way round.
      harness.runtime.splitRank(ranks[rank], rank == 0 ? color0 : color1, rank == 0 ? 1 : 0,
                                [&, rank](const auto& made) {
                                  done++;
                                  if (made && made.value()) parts[rank] = made.value()->handle;
                                });
    }
    harness.until([&] { return done == 2; });
    return parts;
  };
  const auto together = split(0, 0), alone = split(0, 1);
  const Handle stream = valueOf(harness.runtime.createStream(together[1]));
  const Handle event = valueOf(harness.runtime.createEvent(together[1]));
  ASSERT_TRUE(harness.runtime.enqueueBarrier(stream));
  ASSERT_TRUE(harness.runtime.recordEvent(event, stream));
  std::vector<Handle> waiting;
  for (const Handle rank : {ranks[0], alone[0]}) {
    waiting.push_back(valueOf(harness.runtime.createStream(rank)));
    ASSERT_TRUE(harness.runtime.waitEvent(waiting.back(), event));
  }
  ASSERT_TRUE(harness.runtime.abortRank(together[1], "test"));
  const Status parent = harness.synchronize(waiting[0]);
  ASSERT_EQ(codeOf(parent), ErrorCode::kRankLost);
  EXPECT_EQ(parent.error().peer, 1);
  const Status other = harness.synchronize(waiting[1]);
  ASSERT_EQ(codeOf(other), ErrorCode::kRankLost);
  EXPECT_EQ(other.error().peer, -1);
  EXPECT_NE(other.error().detail.find("rank 1 of the world that this one was split from"), std::string::npos)
      << other.error().detail;
  harness.dispose(ranks);
}

}  // namespace
}  // namespace nccl_ext::test
