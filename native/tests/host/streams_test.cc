// SPDX-License-Identifier: Apache-2.0
// Streams, barriers, events and graphs on fake CUDA and NCCL: ordering, limits, deadlines.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "runtime/process.hpp"
#include "tests/fake/fake_cudart.hpp"
#include "tests/support/one_rank.hpp"

namespace nccl_ext::test {
namespace {

using std::chrono::milliseconds;

TEST(Runtime, HoldsAtMost256OperationsAndTakesMoreAfterwards) {
  Harness harness;
  const auto ranks = harness.ranks(2);
  const Handle a = valueOf(harness.runtime.createStream(ranks[0])), b = valueOf(harness.runtime.createStream(ranks[1]));
  const Handle buffer = valueOf(harness.runtime.allocate(ranks[0], 64, MemoryKind::kPlain));
  ASSERT_TRUE(harness.runtime.enqueueBarrier(a));  // holds the stream until rank 1 comes
  for (int i = 1; i < kMaxQueuedOperations; i++) ASSERT_TRUE(harness.runtime.enqueueFill(a, buffer, 0, 64, i & 255));
  EXPECT_EQ(harness.runtime.queued(a), kMaxQueuedOperations);
  EXPECT_EQ(codeOf(harness.runtime.enqueueFill(a, buffer, 0, 64, 1)), ErrorCode::kQueueFull);
  EXPECT_EQ(codeOf(harness.runtime.freeBuffer(buffer)), ErrorCode::kBusy);
  EXPECT_EQ(codeOf(harness.runtime.freeStream(a)), ErrorCode::kBusy);
  ASSERT_TRUE(harness.runtime.enqueueBarrier(b));
  ASSERT_TRUE(harness.synchronize(a));
  EXPECT_EQ(harness.runtime.queued(a), 0);
  for (int i = 0; i < 1000; i++) {
    ASSERT_TRUE(harness.runtime.enqueueFill(a, buffer, 0, 64, 1));
    if (i % 100 == 99) {
      ASSERT_TRUE(harness.synchronize(a));
    }
  }
  ASSERT_TRUE(harness.runtime.freeBuffer(buffer));
  EXPECT_EQ(codeOf(harness.runtime.freeBuffer(buffer)), ErrorCode::kDisposed);
  harness.dispose(ranks);
}

TEST(Runtime, LeavesHardwareQueuesToOtherClientsOfAnMpsServer) {
  std::string place = (std::filesystem::temp_directory_path() / "mps-XXXXXX").string();
  ASSERT_NE(mkdtemp(place.data()), nullptr);
  EXPECT_EQ(queuesFor(place.c_str()), 32) << "no server listens there";
  std::ofstream(place + "/control") << "";
  EXPECT_EQ(queuesFor(place.c_str()), 8);
  std::filesystem::remove_all(place);
}

TEST(Runtime, BarrierMakesRanksWaitForEachOther) {
  Harness harness;
  const auto ranks = harness.ranks(4);
  std::vector<Handle> streams;
  for (const Handle rank : ranks) streams.push_back(valueOf(harness.runtime.createStream(rank)));
  for (int round = 0; round < 20; round++) {
    for (const Handle stream : streams) ASSERT_TRUE(harness.runtime.enqueueBarrier(stream));
  }
  for (const Handle stream : streams) EXPECT_TRUE(harness.synchronize(stream));
  harness.dispose(ranks);
}

TEST(Runtime, BarrierOfAMissingRankTimesOutAndPoisons) {
  Harness harness;
  const auto ranks = harness.ranks(3, milliseconds(100));
  const Handle stream = valueOf(harness.runtime.createStream(ranks[0]));
  ASSERT_TRUE(harness.runtime.enqueueBarrier(stream));
  const Status status = harness.synchronize(stream);
  ASSERT_EQ(codeOf(status), ErrorCode::kTimeout);
  EXPECT_EQ(status.error().rank, 0);
  EXPECT_EQ(status.error().peer, 1);
  EXPECT_TRUE(harness.synchronize(stream)) << "a record is handed out once";
  EXPECT_EQ(codeOf(harness.runtime.enqueueBarrier(stream)), ErrorCode::kPoisoned);
  ASSERT_TRUE(harness.runtime.poisonOf(ranks[0]).has_value());
  EXPECT_EQ(harness.runtime.poisonOf(ranks[0])->code, ErrorCode::kTimeout);
  harness.dispose(ranks);
  const auto next = harness.ranks(2);
  EXPECT_EQ(next.size(), 2u) << "the process goes on";
  harness.dispose(next);
}

TEST(Runtime, KnowsWhyARankFailedWhenTheStreamIsGone) {
  Harness harness;
  const auto ranks = harness.ranks(2, milliseconds(60));
  const Handle stream = valueOf(harness.runtime.createStream(ranks[0]));
  ASSERT_TRUE(harness.runtime.enqueueBarrier(stream));
  harness.until([&] { return harness.runtime.queued(stream) == 0; });
  ASSERT_TRUE(harness.runtime.freeStream(stream));
  ASSERT_TRUE(harness.runtime.poisonOf(ranks[0]).has_value());
  EXPECT_EQ(harness.runtime.poisonOf(ranks[0])->code, ErrorCode::kTimeout);
  harness.dispose(ranks);
}

// As packages/core/src/embedded/worker/barrier-op.test.ts has it.
TEST(Runtime, SkipsWhatWasQueuedBehindAFailureOnEveryStream) {
  Harness harness;
  const auto ranks = harness.ranks(2, milliseconds(100));
  const Handle first = valueOf(harness.runtime.createStream(ranks[0])),
               second = valueOf(harness.runtime.createStream(ranks[0])),
               third = valueOf(harness.runtime.createStream(ranks[0]));
  const Handle event = valueOf(harness.runtime.createEvent(ranks[0]));
  const Handle mark = valueOf(harness.runtime.allocate(ranks[0], 64, MemoryKind::kPlain)),
               other = valueOf(harness.runtime.allocate(ranks[0], 64, MemoryKind::kPlain));
  ASSERT_TRUE(harness.runtime.enqueueFill(first, mark, 0, 64, 5));
  ASSERT_TRUE(harness.runtime.enqueueFill(first, other, 0, 64, 6));
  ASSERT_TRUE(harness.synchronize(first));
  Bytes down(64, 7), up(64, 8), seen(128, 0);
  ASSERT_TRUE(harness.runtime.enqueueBarrier(first));
  ASSERT_TRUE(harness.runtime.recordEvent(event, first));
  ASSERT_TRUE(harness.runtime.enqueueDownload(first, spanOf(down), mark, 0));
  ASSERT_TRUE(harness.runtime.waitEvent(second, event));
  ASSERT_TRUE(harness.runtime.enqueueFill(second, mark, 0, 64, 1));
  ASSERT_TRUE(harness.runtime.enqueueCopy(second, mark, 0, other, 0, 64));
  ASSERT_TRUE(harness.runtime.enqueueUpload(second, mark, 0, spanOf(up)));
  ASSERT_TRUE(harness.runtime.enqueueBarrier(second));
  // The second stream is asked first: it knows why all the same.
  const Status skipped = harness.synchronize(second);
  ASSERT_EQ(codeOf(skipped), ErrorCode::kPoisoned);
  EXPECT_EQ(skipped.error().op, "fill") << "the first that was skipped";
  EXPECT_EQ(skipped.error().peer, 1);
  EXPECT_NE(skipped.error().detail.find("was skipped"), std::string::npos) << skipped.error().detail;
  EXPECT_NE(skipped.error().detail.find("rank 1"), std::string::npos) << skipped.error().detail;
  EXPECT_TRUE(harness.synchronize(second)) << "handed out once";
  EXPECT_EQ(codeOf(harness.synchronize(first)), ErrorCode::kTimeout);
  EXPECT_TRUE(harness.synchronize(third)) << "nothing was queued on it";
  EXPECT_TRUE(valueOf(harness.runtime.queryEvent(event))) << "events are reached";
  EXPECT_EQ(down, Bytes(64, 7));
  // The memory of the fake GPU is the host's.
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(valueOf(harness.runtime.bufferAddress(mark)));
  EXPECT_EQ(Bytes(bytes, bytes + 64), Bytes(64, 5));
  harness.dispose(ranks);
}

TEST(Runtime, SaysThatALargeCopyRanBehindAFailure) {
  Harness harness;
  const auto ranks = harness.ranks(2, milliseconds(100));
  const Handle stream = valueOf(harness.runtime.createStream(ranks[0]));
  constexpr std::int64_t kBytes = (1 << 20) + 1;
  const Handle from = valueOf(harness.runtime.allocate(ranks[0], kBytes, MemoryKind::kPlain)),
               to = valueOf(harness.runtime.allocate(ranks[0], kBytes, MemoryKind::kPlain));
  ASSERT_TRUE(harness.runtime.enqueueBarrier(stream));
  std::optional<Status> barrier;
  harness.runtime.synchronize(stream, [&](const Status& status) { barrier = status; });
  ASSERT_TRUE(harness.runtime.enqueueCopy(stream, to, 0, from, 0, kBytes));
  harness.until([&] { return barrier.has_value(); });
  EXPECT_EQ(codeOf(*barrier), ErrorCode::kTimeout);
  const Status copy = harness.synchronize(stream);
  // Both records may have met in one box, where the first stays.
  if (!copy) {
    EXPECT_EQ(codeOf(copy), ErrorCode::kPoisoned);
    EXPECT_NE(copy.error().detail.find("ran behind a failure"), std::string::npos) << copy.error().detail;
  }
  harness.dispose(ranks);
}

TEST(Runtime, NoticesAFailureBeforeAnybodySynchronizes) {
  Harness harness;
  const auto ranks = harness.ranks(2, milliseconds(50));
  const Handle stream = valueOf(harness.runtime.createStream(ranks[0]));
  EXPECT_FALSE(harness.runtime.poisonOf(ranks[0]));
  ASSERT_TRUE(harness.runtime.enqueueBarrier(stream));
  harness.until([&] { return harness.runtime.poisonOf(ranks[0]).has_value(); });
  EXPECT_EQ(harness.runtime.poisonOf(ranks[0])->code, ErrorCode::kTimeout);
  EXPECT_EQ(codeOf(harness.runtime.enqueueBarrier(stream)), ErrorCode::kPoisoned);
  EXPECT_EQ(codeOf(harness.synchronize(stream)), ErrorCode::kTimeout) << "the record is still there";
  harness.dispose(ranks);
}

TEST(Runtime, WaitsOnTheDeviceEndWhenTheProcessDoes) {
  Harness harness;
  const auto ranks = harness.ranks(2, milliseconds(60'000));
  const Handle stream = valueOf(harness.runtime.createStream(ranks[0]));
  ASSERT_TRUE(harness.runtime.enqueueBarrier(stream));
  PinnedCells::stopAll();  // at exit
  EXPECT_EQ(codeOf(harness.synchronize(stream)), ErrorCode::kAborted);
  harness.dispose(ranks);
}

TEST(Runtime, EventsOrderStreamsAndMeasureTime) {
  OneRank one(64);
  const Handle other = valueOf(one.runtime.createStream(one.rank));
  const Handle start = valueOf(one.runtime.createEvent(one.rank)), end = valueOf(one.runtime.createEvent(one.rank));
  EXPECT_TRUE(valueOf(one.runtime.queryEvent(start)));
  EXPECT_EQ(codeOf(one.runtime.elapsedMs(start, end)), ErrorCode::kInvalidState);
  Bytes down(64);
  ASSERT_TRUE(one.runtime.recordEvent(start, one.stream));
  ASSERT_TRUE(one.runtime.enqueueFill(one.stream, one.buffer, 0, 64, 5));
  ASSERT_TRUE(one.runtime.recordEvent(end, one.stream));
  ASSERT_TRUE(one.runtime.waitEvent(other, end));
  ASSERT_TRUE(one.runtime.enqueueDownload(other, spanOf(down), one.buffer, 0));
  ASSERT_TRUE(one.synchronize(other));
  EXPECT_EQ(down[63], 5);
  std::optional<Status> reached;
  one.runtime.synchronizeEvent(end, [&](const Status& status) { reached = status; });
  one.until([&] { return reached.has_value(); });
  EXPECT_GE(valueOf(one.runtime.elapsedMs(start, end)), 0.0);
}

TEST(Runtime, GraphsRunAgainAndCountOne) {
  OneRank one(64);
  Bytes up(64, 1), down(64);
  ASSERT_TRUE(one.runtime.beginCapture(one.stream));
  EXPECT_EQ(codeOf(one.runtime.beginCapture(one.stream)), ErrorCode::kInvalidState);
  ASSERT_TRUE(one.runtime.enqueueUpload(one.stream, one.buffer, 0, spanOf(up)));
  for (int i = 0; i < 300; i++)
    ASSERT_TRUE(one.runtime.enqueueFill(one.stream, one.buffer, 0, 1, 2)) << "recording counts nothing";
  EXPECT_EQ(one.runtime.queued(one.stream), 0);
  EXPECT_EQ(codeOf(one.synchronize(one.stream)), ErrorCode::kInvalidState);
  const Handle graph = valueOf(one.runtime.endCapture(one.stream));
  EXPECT_EQ(codeOf(one.runtime.freeBuffer(one.buffer)), ErrorCode::kBusy);
  for (std::uint8_t round = 1; round < 4; round++) {
    std::fill(up.begin(), up.end(), round);
    ASSERT_TRUE(one.runtime.launchGraph(graph, one.stream));
    EXPECT_LE(one.runtime.queued(one.stream), 1);
    ASSERT_TRUE(one.runtime.enqueueDownload(one.stream, spanOf(down), one.buffer, 0));
    ASSERT_TRUE(one.synchronize(one.stream));
    EXPECT_EQ(down[0], 2);
    EXPECT_EQ(down[63], round);
  }
  ASSERT_TRUE(one.runtime.freeGraph(graph));
  EXPECT_TRUE(one.runtime.freeBuffer(one.buffer));
}

TEST(Runtime, BuffersAreBusyFromTheMomentAGraphRecordsThem) {
  OneRank one;
  const Handle other = valueOf(one.runtime.createStream(one.rank));
  ASSERT_TRUE(one.runtime.beginCapture(one.stream));
  EXPECT_EQ(codeOf(one.runtime.enqueueFill(one.stream, one.buffer, 0, 8, 256)), ErrorCode::kInvalidArgument);
  const Handle unused = valueOf(one.runtime.allocate(one.rank, 64, MemoryKind::kPlain));
  for (int use = 0; use < 2; use++) ASSERT_TRUE(one.runtime.enqueueFill(one.stream, one.buffer, 0, 8, use));
  const Status status = one.runtime.freeBuffer(one.buffer);
  ASSERT_EQ(codeOf(status), ErrorCode::kBusy);
  EXPECT_NE(status.error().detail.find("a graph"), std::string::npos) << status.error().detail;
  EXPECT_TRUE(one.runtime.freeBuffer(unused));
  const Handle graph = valueOf(one.runtime.endCapture(one.stream));
  EXPECT_EQ(codeOf(one.runtime.freeBuffer(one.buffer)), ErrorCode::kBusy);
  ASSERT_TRUE(one.runtime.launchGraph(graph, other));
  ASSERT_TRUE(one.synchronize(other));
  ASSERT_TRUE(one.runtime.freeGraph(graph));
  EXPECT_TRUE(one.runtime.freeBuffer(one.buffer));
}

TEST(Runtime, BarriersInGraphsKeepTheirEpochs) {
  Harness harness;
  const auto ranks = harness.ranks(2);
  std::vector<Handle> streams, graphs;
  for (const Handle rank : ranks) {
    streams.push_back(valueOf(harness.runtime.createStream(rank)));
    ASSERT_TRUE(harness.runtime.beginCapture(streams.back()));
    ASSERT_TRUE(harness.runtime.enqueueBarrier(streams.back()));
    graphs.push_back(valueOf(harness.runtime.endCapture(streams.back())));
  }
  for (int round = 0; round < 10; round++) {
    for (std::size_t rank = 0; rank < 2; rank++) {
      ASSERT_TRUE(harness.runtime.launchGraph(graphs[rank], streams[rank]));
      ASSERT_TRUE(harness.runtime.enqueueBarrier(streams[rank]));
    }
  }
  for (const Handle stream : streams) EXPECT_TRUE(harness.synchronize(stream));
  harness.dispose(ranks);
}

TEST(Runtime, AFailureInAGraphReachesTheStreamThatLaunchedIt) {
  Harness harness;
  const auto ranks = harness.ranks(2, milliseconds(50));
  const Handle recorder = valueOf(harness.runtime.createStream(ranks[0])),
               launcher = valueOf(harness.runtime.createStream(ranks[0]));
  ASSERT_TRUE(harness.runtime.beginCapture(recorder));
  ASSERT_TRUE(harness.runtime.enqueueBarrier(recorder));
  const Handle graph = valueOf(harness.runtime.endCapture(recorder));
  ASSERT_TRUE(harness.runtime.launchGraph(graph, launcher));
  EXPECT_EQ(codeOf(harness.synchronize(launcher)), ErrorCode::kTimeout);
  EXPECT_TRUE(harness.synchronize(recorder));
  harness.dispose(ranks);
}

TEST(Runtime, StreamsAreLimitedPerDevice) {
  Harness harness;
  const auto ranks = harness.ranks(1);
  std::vector<Handle> streams;
  for (int i = 0; i < 32; i++) streams.push_back(valueOf(harness.runtime.createStream(ranks[0])));
  EXPECT_EQ(codeOf(harness.runtime.createStream(ranks[0])), ErrorCode::kUnsupported);
  ASSERT_TRUE(harness.runtime.freeStream(streams[0]));
  EXPECT_TRUE(harness.runtime.createStream(ranks[0]));
  harness.dispose(ranks);
}

}  // namespace
}  // namespace nccl_ext::test
