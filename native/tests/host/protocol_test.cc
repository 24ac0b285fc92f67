// SPDX-License-Identifier: Apache-2.0
// The barrier's protocol with threads as ranks, across the wrap of its epochs; and the records that it leaves.
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "runtime/shared/barrier.hpp"
#include "runtime/status_text.hpp"

namespace nccl_ext {
namespace {

std::uint64_t nanoseconds() {
  std::this_thread::yield();
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

// The memory of a world whose ranks are threads.
struct World {
  explicit World(int ranks)
      : size(ranks),
        flags(static_cast<std::size_t>(ranks), std::vector<BarrierFlag>(static_cast<std::size_t>(ranks))),
        words(static_cast<std::size_t>(ranks)) {
    for (auto& own : flags) table.push_back(own.data());
  }
  BarrierArgs of(int rank, std::uint64_t timeoutNs = 5'000'000'000) {
    const auto self = static_cast<std::size_t>(rank);
    return {table.data(), flags[self].data(), nullptr, nullptr, &words[self], timeoutNs, rank, size};
  }
  int size;
  std::vector<std::vector<BarrierFlag>> flags;
  std::vector<BarrierFlag*> table;
  std::vector<RankWords> words;
};

bool passBarrier(const BarrierArgs& args, std::uint64_t epoch) {
  for (int peer = 0; peer < args.size; peer++) announce(args, peer, epoch);
  const std::uint64_t deadline = nanoseconds() + args.timeoutNs;
  bool arrived = true;
  for (int peer = 0; peer < args.size; peer++)
    arrived = await(args, peer, epoch, deadline, nanoseconds) == WaitEnd::kArrived && arrived;
  return arrived;
}

// Plain data that each rank writes before a barrier and reads after it: ThreadSanitizer finds a missing edge.
TEST(Barrier, MakesWhatWasWrittenBeforeVisibleAfterAcrossTheWrap) {
  constexpr int kRanks = 4, kRounds = 200;
  const std::uint64_t start = ~std::uint64_t{0} - kRounds / 2;
  World world(kRanks);
  for (auto& own : world.flags) {
    for (BarrierFlag& flag : own) flag.epoch = start;
  }
  std::vector<int> data(kRanks, -1);
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < kRanks; rank++) {
    ranks.emplace_back([&, rank] {
      std::uint64_t epoch = start;
      for (int round = 0; round < kRounds; round++) {
        data[static_cast<std::size_t>(rank)] = round;
        ASSERT_TRUE(passBarrier(world.of(rank), ++epoch));
        for (const int value : data) ASSERT_EQ(value, round);
        ASSERT_TRUE(passBarrier(world.of(rank), ++epoch));
      }
    });
  }
  for (std::thread& rank : ranks) rank.join();
}

TEST(Barrier, EndsAtItsDeadlineAndNamesTheRank) {
  World world(3);
  const BarrierArgs args = world.of(0, 20'000'000);
  announce(world.of(1), 0, 7);
  const std::uint64_t deadline = nanoseconds() + args.timeoutNs;
  EXPECT_EQ(await(args, 1, 7, deadline, nanoseconds), WaitEnd::kArrived);
  EXPECT_EQ(await(args, 2, 7, deadline, nanoseconds), WaitEnd::kExpired);
  const ErrorRecord record = recordOf(failureOf(args, WaitEnd::kExpired, 2, 1, 7), 0);
  EXPECT_EQ(record.code, ErrorCode::kTimeout);
  EXPECT_EQ(record.peer, 2);
  EXPECT_EQ(std::get<std::int64_t>(record.expected), 7);
  EXPECT_EQ(std::get<std::int64_t>(record.seen), 0);
  EXPECT_EQ(record.detail, "rank 0 waited too long in barrier for rank 2");
}

TEST(Barrier, EndsWhenTheHostSaysStop) {
  World world(2);
  const BarrierArgs args = world.of(0);
  std::thread host([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    world.words[0].peer = 1;
    publish<kSystem>(world.words[0].stop, static_cast<std::int32_t>(ErrorCode::kRankLost));
  });
  EXPECT_EQ(await(args, 1, 1, nanoseconds() + args.timeoutNs, nanoseconds), WaitEnd::kStopped);
  host.join();
  const ErrorRecord record = recordOf(failureOf(args, WaitEnd::kStopped, 1, 1, 1), 0);
  EXPECT_EQ(record.code, ErrorCode::kRankLost);
  EXPECT_EQ(record.peer, 1);
}

TEST(StatusBox, KeepsTheFirstRecord) {
  DeviceStatus box, first, second;
  first.code = static_cast<std::int32_t>(ErrorCode::kTimeout);
  first.peer = 3;
  second.code = static_cast<std::int32_t>(ErrorCode::kAborted);
  report(box, first);
  report(box, second);
  EXPECT_EQ(box.code, first.code);
  EXPECT_EQ(box.peer, 3);
}

}  // namespace
}  // namespace nccl_ext
