// SPDX-License-Identifier: Apache-2.0
// A kernel's guard on the fake driver: it ends waits, names the peer and carries a kernel's own error.
#include "tests/support/kernels.hpp"

namespace nccl_ext::test {
namespace {

using std::chrono::milliseconds;

// complain(guard, code)
KernelLaunch complaint(ErrorCode code) {
  KernelLaunch launch = launchOf({0, 0, 0, 0, static_cast<std::uint64_t>(code)});
  launch.offsets = {0, 32};
  launch.guardOffset = 0;
  return launch;
}

TEST(KernelGuard, EndsAWaitAtItsDeadlineAndNamesThePeer) {
  Harness harness;
  const auto ranks = harness.ranks(2, milliseconds(100));
  const Handle module = valueOf(load(harness, ranks[0], bytesOf(kPtx)));
  const Handle kernel = valueOf(harness.runtime.kernelOf(module, "await_flag"));
  const Handle stream = valueOf(harness.runtime.createStream(ranks[0]));
  std::uint64_t flag = 3;
  const auto begun = std::chrono::steady_clock::now();
  ASSERT_TRUE(harness.runtime.launchKernel(stream, kernel, awaiting(reinterpret_cast<std::uint64_t>(&flag), 4)));
  ASSERT_TRUE(harness.runtime.launchKernel(stream, kernel, awaiting(reinterpret_cast<std::uint64_t>(&flag), 5)));
  const Status status = harness.synchronize(stream);
  ASSERT_EQ(codeOf(status), ErrorCode::kTimeout);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, milliseconds(1000)) << "the second wait does not wait";
  EXPECT_EQ(status.error().peer, 1);
  EXPECT_EQ(status.error().op, "kernel");
  EXPECT_EQ(status.error().detail, "rank 0 waited too long in kernel for rank 1");
  EXPECT_EQ(std::get<std::int64_t>(status.error().expected), 4);
  EXPECT_EQ(std::get<std::int64_t>(status.error().seen), 3);
  EXPECT_EQ(codeOf(harness.runtime.launchKernel(stream, kernel, awaiting(0, 0))), ErrorCode::kPoisoned);
  harness.dispose(ranks);
}

TEST(KernelGuard, EndsAWaitWhenThePeerIsAborted) {
  Harness harness;
  const auto ranks = harness.ranks(2, milliseconds(60'000));
  const Handle module = valueOf(load(harness, ranks[0], bytesOf(kPtx)));
  const Handle stream = valueOf(harness.runtime.createStream(ranks[0]));
  std::uint64_t flag = 0;
  ASSERT_TRUE(harness.runtime.launchKernel(stream, valueOf(harness.runtime.kernelOf(module, "await_flag")),
                                           awaiting(reinterpret_cast<std::uint64_t>(&flag), 1)));
  ASSERT_TRUE(harness.runtime.abortRank(ranks[1], "test"));
  const Status status = harness.synchronize(stream);
  ASSERT_EQ(codeOf(status), ErrorCode::kRankLost);
  EXPECT_EQ(status.error().peer, 1);
  harness.dispose(ranks);
}

TEST(KernelGuard, CarriesAKernelsOwnErrorOnceAndTheRankGoesOn) {
  WithModule one;
  const Handle complain = one.kernel("complain");
  for (const auto& [given, expected] :
       {std::pair(ErrorCode::kKernel, ErrorCode::kKernel),
        std::pair(ErrorCode::kInvalidArgument, ErrorCode::kInvalidArgument),
        std::pair(ErrorCode::kOutOfBounds, ErrorCode::kOutOfBounds), std::pair(ErrorCode::kMesh, ErrorCode::kKernel)}) {
    ASSERT_TRUE(one.runtime.launchKernel(one.stream, complain, complaint(given)));
    const Status status = one.synchronize(one.stream);
    ASSERT_EQ(codeOf(status), expected);
    EXPECT_EQ(status.error().detail, "a kernel of rank 0 reported an error about rank 1: it expected 7 and saw 8");
    EXPECT_EQ(std::get<std::int64_t>(status.error().seen), 8);
    EXPECT_TRUE(one.synchronize(one.stream)) << "a record is handed out once";
  }
  EXPECT_FALSE(one.runtime.poisonOf(one.rank).has_value());
}

TEST(KernelGuard, OfAGraphLeadsToTheStreamThatLaunchedIt) {
  WithModule one;
  ASSERT_TRUE(one.runtime.beginCapture(one.stream));
  ASSERT_TRUE(one.runtime.launchKernel(one.stream, one.kernel("complain"), complaint(ErrorCode::kKernel)));
  const Handle graph = valueOf(one.runtime.endCapture(one.stream));
  const Handle launcher = valueOf(one.runtime.createStream(one.rank));
  for (int round = 0; round < 2; round++) {
    ASSERT_TRUE(one.runtime.launchGraph(graph, launcher));
    EXPECT_EQ(codeOf(one.synchronize(launcher)), ErrorCode::kKernel);
    EXPECT_TRUE(one.synchronize(one.stream));
  }
}

TEST(StatusBox, IsClaimedByOneOfManyThreads) {
  for (int round = 0; round < 50; round++) {
    DeviceStatus box;
    std::vector<std::thread> threads;
    for (int writer = 1; writer <= 4; writer++) {
      threads.emplace_back([&box, writer] {
        DeviceStatus record;
        record.code = record.peer = writer;
        record.expected = record.seen = static_cast<std::uint64_t>(writer);
        report(box, record);
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(box.code, box.peer);
    EXPECT_EQ(box.expected, static_cast<std::uint64_t>(box.code));
    clear(box);
    EXPECT_TRUE(claim<kDevice>(box.claim));
  }
}

}  // namespace
}  // namespace nccl_ext::test
