// SPDX-License-Identifier: Apache-2.0
// The runtime part of the contract on fake CUDA and NCCL: ordering, limits, typed errors, lifetimes.
#include <algorithm>

#include "tests/fake/fake_cudart.hpp"
#include "tests/support/harness.hpp"

namespace nccl_ext::test {
namespace {

using std::chrono::milliseconds;

HostSpan spanOf(Bytes& bytes) {
  return {bytes.data(), bytes.size(), std::make_shared<int>(0)};
}

Bytes pattern(std::size_t size) {
  Bytes bytes(size);
  for (std::size_t i = 0; i < size; i++) bytes[i] = static_cast<std::uint8_t>(i * 31 + i / 251);
  return bytes;
}

// One rank with a stream and a symmetric buffer.
struct OneRank : Harness {
  explicit OneRank(std::int64_t bytes = 1024) {
    handles = ranks(1);
    rank = handles.at(0);
    stream = valueOf(runtime.createStream(rank));
    buffer = valueOf(runtime.allocate(rank, bytes, MemoryKind::kSymmetric));
  }
  std::vector<Handle> handles;
  Handle rank = 0, stream = 0, buffer = 0;
};

TEST(Runtime, MakesRanksAndFreesEverything) {
  const int before = fake::liveObjects();
  {
    Harness harness;
    const auto ranks = harness.ranks(4);
    ASSERT_EQ(ranks.size(), 4u);
    EXPECT_EQ(valueOf(harness.runtime.deviceOf(ranks[0])).name, "fake GPU");
    for (const Handle rank : ranks) {
      (void)valueOf(harness.runtime.allocate(rank, 100, MemoryKind::kPlain));
      (void)valueOf(harness.runtime.createStream(rank));
      (void)valueOf(harness.runtime.createEvent(rank));
    }
    harness.dispose(ranks);
    EXPECT_EQ(codeOf(harness.runtime.allocate(ranks[0], 1, MemoryKind::kPlain)), ErrorCode::kDisposed);
    EXPECT_EQ(harness.runtime.memoryUsage().allocatedBytes, 0);
  }
  EXPECT_EQ(fake::liveObjects(), before);
}

TEST(Runtime, EndsWithRanksAliveAndWorkInFlight) {
  const int before = fake::liveObjects();
  {
    Harness harness;
    const auto ranks = harness.ranks(2, milliseconds(60'000));
    const Handle stream = valueOf(harness.runtime.createStream(ranks[0]));
    ASSERT_TRUE(harness.runtime.enqueueBarrier(stream));
    harness.runtime.synchronize(stream, [](const Status&) {});
    harness.runtime.exchange(ranks[1], "never", {}, [](const auto&) {});
  }
  EXPECT_EQ(fake::liveObjects(), before);
}

TEST(Runtime, RefusesWrongConfigurations) {
  Harness harness;
  EXPECT_EQ(codeOf(harness.tryRanks({0, {}, milliseconds(100)})), ErrorCode::kInvalidArgument);
  EXPECT_EQ(codeOf(harness.tryRanks({1, {7}, milliseconds(100)})), ErrorCode::kInvalidArgument);
  EXPECT_EQ(codeOf(harness.tryRanks({2, {0}, milliseconds(100)})), ErrorCode::kInvalidArgument);
  EXPECT_EQ(codeOf(harness.tryRanks({1, {}, milliseconds(0)})), ErrorCode::kInvalidArgument);
}

TEST(Runtime, CopiesBetweenHostAndDeviceInPieces) {
  // Three pieces of staging and a rest.
  const Bytes sent = pattern((13u << 20) + 5);
  OneRank one(static_cast<std::int64_t>(sent.size()));
  Bytes up = sent, down(sent.size());
  ASSERT_TRUE(one.runtime.enqueueUpload(one.stream, one.buffer, 0, spanOf(up)));
  ASSERT_TRUE(one.runtime.enqueueDownload(one.stream, spanOf(down), one.buffer, 0));
  ASSERT_TRUE(one.synchronize(one.stream));
  EXPECT_TRUE(down == sent);
}

TEST(Runtime, CopiesAndFillsWithinBounds) {
  OneRank one(256);
  Bytes down(256);
  ASSERT_TRUE(one.runtime.enqueueFill(one.stream, one.buffer, 0, 256, 7));
  ASSERT_TRUE(one.runtime.enqueueFill(one.stream, one.buffer, 0, 16, 9));
  ASSERT_TRUE(one.runtime.enqueueCopy(one.stream, one.buffer, 128, one.buffer, 0, 32));
  ASSERT_TRUE(one.runtime.enqueueFill(one.stream, one.buffer, 256, 0, 1)) << "nothing at the end is a valid range";
  ASSERT_TRUE(one.runtime.enqueueDownload(one.stream, spanOf(down), one.buffer, 0));
  ASSERT_TRUE(one.synchronize(one.stream));
  EXPECT_EQ(down[15], 9);
  EXPECT_EQ(down[16], 7);
  EXPECT_EQ(down[143], 9);
  EXPECT_EQ(down[144], 7);
  EXPECT_EQ(codeOf(one.runtime.enqueueFill(one.stream, one.buffer, 250, 7, 0)), ErrorCode::kOutOfBounds);
  EXPECT_EQ(codeOf(one.runtime.enqueueFill(one.stream, one.buffer, -1, 7, 0)), ErrorCode::kInvalidArgument);
  EXPECT_EQ(codeOf(one.runtime.enqueueFill(one.stream, one.buffer, 0, 7, 256)), ErrorCode::kInvalidArgument);
  EXPECT_EQ(codeOf(one.runtime.enqueueCopy(one.stream, one.buffer, 8, one.buffer, 0, 9)), ErrorCode::kOverlap);
  EXPECT_EQ(codeOf(one.runtime.enqueueFill(one.buffer, one.buffer, 0, 1, 0)), ErrorCode::kInvalidArgument)
      << "a buffer is no stream";
}

TEST(Runtime, ReportsMemoryThatCannotBeHad) {
  OneRank one;
  for (const MemoryKind kind : {MemoryKind::kPlain, MemoryKind::kSymmetric}) {
    const auto outcome = one.runtime.allocate(one.rank, std::int64_t{1} << 50, kind);
    ASSERT_EQ(codeOf(outcome), ErrorCode::kOutOfMemory);
    EXPECT_EQ(std::get<std::int64_t>(outcome.error().seen), std::int64_t{1} << 50);
  }
  EXPECT_TRUE(one.runtime.allocate(one.rank, 0, MemoryKind::kSymmetric));
}

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

TEST(Runtime, AbortEndsWaitsHereAndAtThePeers) {
  Harness harness;
  const auto ranks = harness.ranks(2, milliseconds(60'000));
  std::vector<Handle> streams;
  std::vector<std::optional<Status>> results(2);
  for (const Handle rank : ranks) streams.push_back(valueOf(harness.runtime.createStream(rank)));
  // Two barriers of rank 0 meet one of rank 1: its second one waits.
  ASSERT_TRUE(harness.runtime.enqueueBarrier(streams[0]));
  ASSERT_TRUE(harness.runtime.enqueueBarrier(streams[0]));
  ASSERT_TRUE(harness.runtime.enqueueBarrier(streams[1]));
  harness.runtime.synchronize(streams[0], [&](const Status& status) { results[0] = status; });
  ASSERT_TRUE(harness.runtime.abortRank(ranks[1], "test"));
  harness.until([&] { return results[0].has_value(); });
  EXPECT_EQ(codeOf(*results[0]), ErrorCode::kRankLost);
  EXPECT_EQ(results[0]->error().peer, 1);
  EXPECT_EQ(codeOf(harness.runtime.enqueueBarrier(streams[1])), ErrorCode::kPoisoned);
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

TEST(Runtime, ExchangesPayloadsInOrder) {
  Harness harness;
  const auto ranks = harness.ranks(3);
  int done = 0;
  for (int round = 0; round < 5; round++) {
    for (std::size_t rank = 0; rank < ranks.size(); rank++) {
      harness.runtime.exchange(ranks[rank], "topic " + std::to_string(round), Bytes{static_cast<std::uint8_t>(rank)},
                               [&](const Outcome<std::vector<Bytes>>& all) {
                                 EXPECT_TRUE(all);
                                 if (all) {
                                   EXPECT_EQ(all.value(), (std::vector<Bytes>{{0}, {1}, {2}}));
                                 }
                                 done++;
                               });
    }
  }
  harness.until([&] { return done == 15; });
  harness.dispose(ranks);
}

TEST(Runtime, RegistersWindowsOrRefusesOnEveryRank) {
  Harness harness;
  const auto ranks = harness.ranks(2);
  const auto registerAll = [&](std::vector<Handle> buffers) {
    std::vector<Outcome<Handle>> results;
    for (std::size_t rank = 0; rank < 2; rank++)
      harness.runtime.registerWindow(ranks[rank], buffers[rank],
                                     [&](const Outcome<Handle>& window) { results.push_back(window); });
    harness.until([&] { return results.size() == 2; });
    return results;
  };
  std::vector<Handle> symmetric, mixed;
  for (const Handle rank : ranks)
    symmetric.push_back(valueOf(harness.runtime.allocate(rank, 512, MemoryKind::kSymmetric)));
  mixed = {symmetric[0], valueOf(harness.runtime.allocate(ranks[1], 512, MemoryKind::kPlain))};
  for (const auto& result : registerAll(mixed)) EXPECT_EQ(codeOf(result), ErrorCode::kInvalidArgument);
  const auto windows = registerAll(symmetric);
  for (const auto& window : windows) ASSERT_TRUE(window) << window.error().detail;
  EXPECT_EQ(codeOf(harness.runtime.freeBuffer(symmetric[0])), ErrorCode::kBusy);
  for (const auto& window : windows) EXPECT_TRUE(harness.runtime.freeWindow(window.value()));
  EXPECT_TRUE(harness.runtime.freeBuffer(symmetric[0])) << "the memory itself goes when NCCL has let go of it";
  EXPECT_EQ(codeOf(harness.runtime.freeBuffer(symmetric[0])), ErrorCode::kDisposed);
  harness.until([&] { return harness.runtime.memoryUsage().reservedBytes == 2 * 512; });
  harness.dispose(ranks);
}

TEST(Runtime, AWindowOfARankAloneIsItsOwnMemory) {
  OneRank one;
  std::optional<Outcome<Handle>> window;
  one.runtime.registerWindow(one.rank, one.buffer, [&](const Outcome<Handle>& result) { window = result; });
  one.until([&] { return window.has_value(); });
  ASSERT_TRUE(*window) << window->error().detail;
  EXPECT_EQ(codeOf(one.runtime.freeBuffer(one.buffer)), ErrorCode::kBusy);
  ASSERT_TRUE(one.runtime.freeWindow(window->value()));
  EXPECT_TRUE(one.runtime.freeBuffer(one.buffer));
  one.dispose(one.handles);
}

TEST(Runtime, RefusesObjectsOfAnotherRank) {
  Harness harness;
  const auto ranks = harness.ranks(2);
  const Handle stream = valueOf(harness.runtime.createStream(ranks[0]));
  const Handle buffer = valueOf(harness.runtime.allocate(ranks[1], 64, MemoryKind::kPlain));
  const Handle event = valueOf(harness.runtime.createEvent(ranks[1]));
  EXPECT_EQ(codeOf(harness.runtime.enqueueFill(stream, buffer, 0, 64, 0)), ErrorCode::kForeignObject);
  EXPECT_EQ(codeOf(harness.runtime.recordEvent(event, stream)), ErrorCode::kForeignObject);
  EXPECT_TRUE(harness.runtime.waitEvent(stream, event)) << "ranks of one world may wait for each other's events";
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

TEST(Runtime, JoinsAWorldOfProcesses) {
  // Two runtimes stand for two processes.
  Harness zero, one;
  std::optional<Outcome<Handle>> first, second;
  JoinConfig config{0, 2, 0, 2, "127.0.0.1", 29731, "", milliseconds(5000)};
  zero.runtime.joinRank(config, [&](const Outcome<Handle>& rank) { first = rank; });
  config.rank = config.localRank = 1;
  one.runtime.joinRank(config, [&](const Outcome<Handle>& rank) { second = rank; });
  zero.until([&] { return first.has_value(); });
  one.until([&] { return second.has_value(); });
  ASSERT_TRUE(*first) << first->error().detail;
  ASSERT_TRUE(*second) << second->error().detail;
  const Handle a = valueOf(zero.runtime.createStream(first->value())),
               b = valueOf(one.runtime.createStream(second->value()));
  ASSERT_TRUE(zero.runtime.enqueueBarrier(a));
  ASSERT_TRUE(one.runtime.enqueueBarrier(b));
  EXPECT_TRUE(zero.synchronize(a));
  EXPECT_TRUE(one.synchronize(b));
  one.dispose({second->value()});
  zero.dispose({first->value()});
}

}  // namespace
}  // namespace nccl_ext::test
