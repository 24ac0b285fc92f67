// SPDX-License-Identifier: Apache-2.0
// The barrier kernel: ranks as streams, across the wrap of the epochs; and how it fails.
#include <gtest/gtest.h>

#include <vector>

#include "runtime/barrier.hpp"

namespace nccl_ext::test {
namespace {

struct Ranks {
  Ranks(int size, std::uint64_t start, std::uint64_t seed)
      : flags(count(size)), epochs(count(size), start), boxes(count(size)), words(count(size)) {
    simt::machine().reset(seed);
    for (auto& own : flags) {
      own.resize(count(size));
      for (BarrierFlag& flag : own) flag.epoch = start;
      peers.push_back(own.data());
    }
  }
  static std::size_t count(int number) { return static_cast<std::size_t>(number); }

  void enqueue(int rank) {
    const std::size_t at = count(rank);
    const BarrierArgs args{peers.data(), peers[at],  &epochs[at], &boxes[at],
                           &words[at],   10'000'000, rank,        static_cast<int>(peers.size())};
    launchBarrier(args, reinterpret_cast<cudaStream_t>(at + 1));
  }

  std::vector<std::vector<BarrierFlag>> flags;
  std::vector<BarrierFlag*> peers;
  std::vector<std::uint64_t> epochs;
  std::vector<DeviceStatus> boxes;
  std::vector<RankWords> words;
};

TEST(SimtBarrier, HoldsEveryRankAcrossTheWrap) {
  for (const int size : {1, 2, 7, 40}) {
    const std::uint64_t start = ~std::uint64_t{0} - 1;
    Ranks ranks(size, start, static_cast<unsigned>(size));
    for (std::uint64_t epoch = 1; epoch <= 4; epoch++) {
      for (int rank = 1; rank < size; rank++) ranks.enqueue(rank);
      ASSERT_EQ(simt::machine().run(200), "");
      for (int rank = 1; rank < size; rank++) EXPECT_EQ(ranks.epochs[Ranks::count(rank)], start + epoch - 1);
      ranks.enqueue(0);
      ASSERT_EQ(simt::machine().run(), "");
      for (int rank = 0; rank < size; rank++) {
        EXPECT_EQ(ranks.epochs[Ranks::count(rank)], start + epoch);
        EXPECT_EQ(ranks.boxes[Ranks::count(rank)].code, 0);
      }
    }
  }
}

TEST(SimtBarrier, NamesTheFirstOfTheMissing) {
  Ranks ranks(6, 0, 1);
  for (const int rank : {0, 1, 3, 5}) ranks.enqueue(rank);
  ASSERT_EQ(simt::machine().run(), "");
  for (const int rank : {0, 1, 3, 5}) {
    const DeviceStatus& box = ranks.boxes[Ranks::count(rank)];
    EXPECT_EQ(box.code, static_cast<int>(ErrorCode::kTimeout));
    EXPECT_EQ(box.peer, 2);
    EXPECT_EQ(box.missing, 2);
    EXPECT_EQ(ranks.words[Ranks::count(rank)].drained, 1);
    EXPECT_EQ(ranks.epochs[Ranks::count(rank)], 1u);
  }
  // What follows waits for nobody.
  clear(ranks.boxes[0]);
  ranks.enqueue(0);
  ASSERT_EQ(simt::machine().run(), "");
  EXPECT_EQ(ranks.boxes[0].code, static_cast<int>(ErrorCode::kPoisoned));
  EXPECT_EQ(ranks.epochs[0], 2u);
}

}  // namespace
}  // namespace nccl_ext::test
