// SPDX-License-Identifier: Apache-2.0
// Ranks, memory and windows on fake CUDA and NCCL: typed errors, bounds, lifetimes.
#include <algorithm>

#include "tests/fake/fake_cudart.hpp"
#include "tests/support/one_rank.hpp"

namespace nccl_ext::test {
namespace {

using std::chrono::milliseconds;

TEST(Runtime, MakesRanksAndFreesEverything) {
  const int before = fake::liveObjects();
  {
    Harness harness;
    const auto ranks = harness.ranks(4);
    ASSERT_EQ(ranks.size(), 4u);
    EXPECT_EQ(valueOf(harness.runtime.deviceOf(ranks[0])).name, "Fake GPU 0");
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
  const Bytes sent = pattern((31u << 20) + 5);
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

TEST(Runtime, FreesTheMemoryOfADisposedRankAtOnceUnlessPeersReachIt) {
  Harness harness;
  const auto ranks = harness.ranks(2);
  std::vector<Handle> windowed;
  for (const Handle rank : ranks) {
    (void)valueOf(harness.runtime.allocate(rank, 1000, MemoryKind::kPlain));
    (void)valueOf(harness.runtime.allocate(rank, 2000, MemoryKind::kSymmetric));
    windowed.push_back(valueOf(harness.runtime.allocate(rank, 4000, MemoryKind::kSymmetric)));
  }
  std::size_t made = 0;
  for (std::size_t rank = 0; rank < 2; rank++) {
    harness.runtime.registerWindow(ranks[rank], windowed[rank], [&](const Outcome<Handle>& window) {
      EXPECT_TRUE(window);
      made++;
    });
  }
  harness.until([&] { return made == 2; });
  const int before = fake::liveObjects();
  (void)valueOf(harness.runtime.createStream(ranks[0]));
  harness.dispose({ranks[0]});
  harness.until([&] { return harness.runtime.memoryUsage().reservedBytes == 7000 + 4000; });
  EXPECT_LT(fake::liveObjects(), before) << "also what its stream staged through";
  harness.dispose({ranks[1]});
  harness.until([&] { return harness.runtime.memoryUsage().reservedBytes == 0; });
}

TEST(Runtime, AllocatesNothingPinnedOnTheDataPath) {
  OneRank one(32 << 20);
  const Handle other = valueOf(one.runtime.createStream(one.rank));
  Bytes host(32 << 20);
  const int before = fake::pinnedAllocations();
  for (const Handle stream : {one.stream, other}) {
    ASSERT_TRUE(one.runtime.enqueueUpload(stream, one.buffer, 0, spanOf(host)));
    ASSERT_TRUE(one.runtime.enqueueDownload(stream, spanOf(host), one.buffer, 0));
    ASSERT_TRUE(one.synchronize(stream));
  }
  EXPECT_EQ(fake::pinnedAllocations(), before);
  // Streams that come and go use the same.
  ASSERT_TRUE(one.runtime.freeStream(other));
  (void)valueOf(one.runtime.createStream(one.rank));
  EXPECT_EQ(fake::pinnedAllocations(), before);
}

// As behind long work on a stream of somebody else's: what the copy reads must be there when it comes.
TEST(Runtime, KeepsWhatWorkUsesThatOutlastsItsRank) {
  Harness harness;
  const auto ranks = harness.ranks(1, milliseconds(1));
  const Handle stream = valueOf(harness.runtime.createStream(ranks[0]));
  const Handle buffer = valueOf(harness.runtime.allocate(ranks[0], 64, MemoryKind::kPlain));
  std::atomic<bool> over{false};
  const std::uint64_t address = valueOf(harness.runtime.streamAddress(stream));
  (void)fake::launch(reinterpret_cast<cudaStream_t>(static_cast<std::uintptr_t>(address)), [&over] {
    while (!over) std::this_thread::sleep_for(milliseconds(1));
  });
  Bytes up(64, 1);
  HostSpan host = spanOf(up);
  const std::weak_ptr<void> kept = host.keep;
  ASSERT_TRUE(harness.runtime.enqueueUpload(stream, buffer, 0, std::move(host)));
  std::thread ends([&over] {
    std::this_thread::sleep_for(kCloseGrace + milliseconds(500));
    over = true;
  });
  // The fake waits for a stream that goes.
  harness.dispose(ranks);
  ends.join();
  EXPECT_FALSE(kept.expired());
}

TEST(Runtime, DescribesTheGpuAndItsShare) {
  Harness harness;
  const auto ranks = valueOf(harness.tryRanks({4, {}, milliseconds(2000), {}}));
  const DeviceInfo device = valueOf(harness.runtime.deviceOf(ranks[3]));
  EXPECT_EQ(device.index, 0);
  EXPECT_EQ(device.name, "Fake GPU 0");
  EXPECT_EQ(device.uuid, "GPU-00102030-4050-6070-8090-a0b0c0d0e0f0");
  EXPECT_EQ(device.multiprocessors, 132);
  EXPECT_EQ(device.ranks, 4);
  EXPECT_EQ(device.smBudget, 26);
  const Facts facts = valueOf(harness.runtime.factsOf(ranks[0]));
  EXPECT_EQ(facts.front(), (std::pair<std::string, std::string>("ranks", "4")));
  EXPECT_NE(std::find(facts.begin(), facts.end(), std::pair<std::string, std::string>("gin", "none")), facts.end());
  harness.dispose(ranks);
  const auto asked = valueOf(harness.tryRanks({2, {}, milliseconds(2000), {66, 60}}));
  EXPECT_EQ(valueOf(harness.runtime.deviceOf(asked[0])).smBudget, 66);
  harness.dispose(asked);
  EXPECT_EQ(codeOf(harness.tryRanks({2, {}, milliseconds(2000), {66, 67}})), ErrorCode::kInvalidArgument);
  EXPECT_EQ(codeOf(harness.tryRanks({2, {}, milliseconds(2000), {1, -1}})), ErrorCode::kInvalidArgument);
}

TEST(Runtime, LoadsNcclOnceForTheProcess) {
  Harness said({13, "0.0.0", {FAKE_NCCL_GOOD, ""}}), again({13, "0.0.0", {}}),
      other({13, "0.0.0", {FAKE_NCCL_NEW, ""}}), home({13, "0.0.0", {"", "/elsewhere"}});
  for (Harness* fits : {&said, &again}) fits->dispose(fits->ranks(1));
  for (Harness* late : {&other, &home}) {
    const auto outcome = late->tryRanks({1, {}, milliseconds(2000)});
    ASSERT_EQ(codeOf(outcome), ErrorCode::kInvalidState);
    EXPECT_NE(outcome.error().detail.find("nccl-good"), std::string::npos) << outcome.error().detail;
  }
}

}  // namespace
}  // namespace nccl_ext::test
