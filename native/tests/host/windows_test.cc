// SPDX-License-Identifier: Apache-2.0
// How long windows live: kernels that read a window's table hold it, and a rank that is disposed gets no window.
#include "tests/fake/fake_cudart.hpp"
#include "tests/support/failing_nccl.hpp"
#include "tests/support/one_rank.hpp"

namespace nccl_ext::test {
namespace {

// Two ranks with a stream and a buffer for a window each.
struct TwoRanks : Harness {
  explicit TwoRanks(Timeout timeout = Timeout(60'000)) {
    handles = ranks(2, timeout);
    for (const Handle rank : handles) {
      streams.push_back(valueOf(runtime.createStream(rank)));
      buffers.push_back(valueOf(runtime.allocate(rank, 1000, MemoryKind::kSymmetric)));
    }
  }
  void registerAll() {
    for (std::size_t rank = 0; rank < 2; rank++) {
      runtime.registerWindow(handles[rank], buffers[rank],
                             [this, rank](const Outcome<Handle>& window) { windows[rank] = window; });
    }
  }
  bool answered() const { return windows[0].has_value() && windows[1].has_value(); }

  std::vector<Handle> handles, streams, buffers;
  std::optional<Outcome<Handle>> windows[2];
};

TEST(Windows, AreBusyWhileWorkOrAGraphUsesTheirBuffer) {
  TwoRanks two;
  two.registerAll();
  two.until([&] { return two.answered(); });
  const Handle window = valueOf(*two.windows[0]), stream = two.streams[0];
  const auto expectBusy = [&](const std::string& user) {
    const Status status = two.runtime.freeWindow(window);
    ASSERT_EQ(codeOf(status), ErrorCode::kBusy) << user;
    EXPECT_NE(status.error().detail.find(user), std::string::npos) << status.error().detail;
    EXPECT_NE(status.error().help.find("synchronize"), std::string::npos) << "says what to do";
    EXPECT_EQ(status.error().rank, 0);
    EXPECT_TRUE(two.runtime.windowPeers(window)) << "its table stays";
  };
  // The fill waits behind the barrier until rank 1 comes.
  ASSERT_TRUE(two.runtime.enqueueBarrier(stream));
  ASSERT_TRUE(two.runtime.enqueueFill(stream, two.buffers[0], 0, 8, 1));
  expectBusy("queued work");
  ASSERT_TRUE(two.runtime.enqueueBarrier(two.streams[1]));
  ASSERT_TRUE(two.synchronize(stream));

  ASSERT_TRUE(two.runtime.beginCapture(stream));
  ASSERT_TRUE(two.runtime.enqueueFill(stream, two.buffers[0], 0, 8, 1));
  expectBusy("a graph");
  const Handle graph = valueOf(two.runtime.endCapture(stream));
  expectBusy("a graph");
  ASSERT_TRUE(two.runtime.freeGraph(graph));
  ASSERT_TRUE(two.runtime.freeWindow(window));
  EXPECT_EQ(codeOf(two.runtime.freeWindow(window)), ErrorCode::kDisposed);
  two.dispose(two.handles);
}

TEST(Windows, OfARankThatIsDisposedMeanwhileGoWithIt) {
  const int before = fake::liveObjects();
  {
    TwoRanks two;
    // Keeps rank 0 from being drained before both have registered.
    ASSERT_TRUE(two.runtime.enqueueBarrier(two.streams[0]));
    two.registerAll();
    bool gone = false;
    two.runtime.disposeRank(two.handles[0], [&](const Status& status) {
      EXPECT_TRUE(status);
      gone = true;
    });
    two.until([&] { return two.answered(); });
    EXPECT_EQ(codeOf(*two.windows[0]), ErrorCode::kDisposed);
    ASSERT_TRUE(*two.windows[1]);
    EXPECT_FALSE(gone);
    ASSERT_TRUE(two.runtime.enqueueBarrier(two.streams[1]));
    ASSERT_TRUE(two.synchronize(two.streams[1]));
    two.until([&] { return gone; });
    EXPECT_EQ(two.runtime.memoryUsage().allocatedBytes, 1000);
    EXPECT_EQ(two.runtime.memoryUsage().reservedBytes, 2000) << "rank 1 may still write to rank 0's part";
    two.dispose({two.handles[1]});
    two.until([&] { return two.runtime.memoryUsage().reservedBytes == 0; });
  }
  EXPECT_EQ(fake::liveObjects(), before);
}

TEST(Windows, ThatNcclDidNotFinishKeepTheirMemory) {
  TwoRanks two(Timeout(300));
  {
    const FailingNccl failing("register 1");
    two.registerAll();
    two.until([&] { return two.answered(); });
  }
  EXPECT_EQ(codeOf(*two.windows[0]), ErrorCode::kTimeout);
  EXPECT_EQ(codeOf(*two.windows[1]), ErrorCode::kInternal);
  for (const Handle buffer : two.buffers) ASSERT_TRUE(two.runtime.freeBuffer(buffer));
  // Memory of a buffer that nobody can reach goes meanwhile.
  const Handle other = valueOf(two.runtime.allocate(two.handles[0], 10, MemoryKind::kSymmetric));
  ASSERT_TRUE(two.runtime.freeBuffer(other));
  two.until([&] { return two.runtime.memoryUsage().reservedBytes == 2000; });
  EXPECT_EQ(two.runtime.memoryUsage().allocatedBytes, 0);
  two.dispose(two.handles);
  two.until([&] { return two.runtime.memoryUsage().reservedBytes == 0; });
}

TEST(Windows, OfALastRankThatIsDisposedMeanwhileGoWithItsWorld) {
  const int before = fake::liveObjects();
  {
    OneRank one;
    std::optional<Outcome<Handle>> window;
    std::optional<Status> gone;
    one.runtime.registerWindow(one.rank, one.buffer, [&](const Outcome<Handle>& result) { window = result; });
    one.runtime.disposeRank(one.rank, [&](const Status& status) { gone = status; });
    one.until([&] { return window.has_value() && gone.has_value(); });
    EXPECT_EQ(codeOf(*window), ErrorCode::kDisposed);
    EXPECT_TRUE(*gone);
    one.until([&] { return one.runtime.memoryUsage().reservedBytes == 0; });
  }
  EXPECT_EQ(fake::liveObjects(), before);
}

TEST(WindowPeers, AreEveryRanksMemoryInATableThatKernelsRead) {
  Harness harness;
  const auto ranks = harness.ranks(3);
  std::vector<Handle> buffers, windows(ranks.size());
  std::size_t made = 0;
  for (std::size_t rank = 0; rank < ranks.size(); rank++) {
    buffers.push_back(valueOf(harness.runtime.allocate(ranks[rank], 256, MemoryKind::kSymmetric)));
    harness.runtime.registerWindow(ranks[rank], buffers[rank], [&, rank](Outcome<Handle> window) {
      windows[rank] = valueOf(window);
      made++;
    });
  }
  harness.until([&] { return made == ranks.size(); });
  for (const Handle window : windows) {
    const WindowPeers peers = valueOf(harness.runtime.windowPeers(window));
    ASSERT_EQ(peers.addresses.size(), ranks.size());
    const auto* table = reinterpret_cast<const std::uint64_t*>(peers.table);
    for (std::size_t rank = 0; rank < ranks.size(); rank++) {
      EXPECT_EQ(peers.addresses[rank], valueOf(harness.runtime.bufferAddress(buffers[rank])));
      EXPECT_EQ(table[rank], peers.addresses[rank]);
    }
  }
  ASSERT_TRUE(harness.runtime.freeWindow(windows[0]));
  EXPECT_EQ(codeOf(harness.runtime.windowPeers(windows[0])), ErrorCode::kDisposed);
  harness.dispose(ranks);
}

}  // namespace
}  // namespace nccl_ext::test
